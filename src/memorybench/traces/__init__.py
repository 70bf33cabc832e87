"""Extractions that happened somewhere else: where their traces come from, and where scores go back to.

paths.py      TracePaths: finds conversation, existing memory and output in a run, or says what it can not find
messages.py   a conversation as services and LangChain write it down, as turns
langsmith.py  LangSmith: runs page by page from either of its query APIs, and feedback
jsonl.py      JsonlTraces: a file of traces from anywhere
spool.py      spool, Spool: fetched once into a file beside the run, read one by one
"""

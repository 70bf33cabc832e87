"""Reads traces that other programs recorded, and sends scores back to tracing services.

paths.py      TracePaths: finds conversation, existing memory and output in a recorded run
messages.py   parses conversations as services and LangChain write them
langsmith.py  LangSmith: reads runs page by page from either of its query APIs, and posts feedback
jsonl.py      JsonlTraces: reads traces from a file
otlp_spans.py SpanTable: collects the spans in a file, and finds the conversation and the reply of each operation
span_files.py SpanFiles: files of OTLP JSON in a folder, written durably and read in order
receiver.py   Receiver: stores spans that it receives by OTLP/HTTP in a folder of SpanFiles
otlp.py       OtlpTraces: finds the conversation and the writes of each extraction in spans
operations.py collect: finds searches and writes in spans, and stores them in files of the run
rows.py       reads the rows of exported files: JSON, JSONL, CSV, Parquet
exported_spans.py reads spans that Langfuse, Phoenix and LangSmith export, as spans of OpenTelemetry
contents.py   finds messages, queries and memories in the recorded inputs and outputs of spans
langfuse.py   LangfuseScores: posts scores to Langfuse
spool.py      spool: fetches traces once, into a file in the run's folder
"""

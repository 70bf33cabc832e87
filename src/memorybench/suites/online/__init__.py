"""Measures how an agent in production uses its memory: errors, empty results, memories used, and memories written.

suite.py    the suite and its command
spec.py     the options of a run
prepare.py  a run from its spec
plan.py     one job per search, and one per conversation that memories were written from
report.py   metrics and report
"""

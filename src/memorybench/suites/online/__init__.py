"""Measures how an agent in production searches its memory: errors, empty results, and use of what was found.

suite.py    the suite and its command
spec.py     the options of a run
prepare.py  a run from its spec
plan.py     one job per search
report.py   metrics and report
"""

"""Renderers: one file per format. They know the sections of `core.report`, never a suite.

formatting.py     numbers and table cells as text
terminal.py       a report on the terminal
markdown.py       report.md
json_document.py  report.json and --json
report_files.py   writes the report files of a run, and the report on the page of a GitHub workflow run
export.py         one row per trial, as CSV, JSON or JSONL
parquet.py        the same rows as Parquet
latex.py          tables for papers
progress.py       progress bars and lines while a run is performed
estimates.py      the table of --dry-run
"""

"""Renderers: one file per format. They render the sections of `core.report_sections` and do not depend on suites.

Reports
  terminal.py        a report on the terminal
  markdown.py        report.md
  html/              the sections of a page, and their style
  json_document.py   report.json and --json
  latex.py           tables for papers
  report_files.py    writes the report files of a run, and the summary of a GitHub workflow step
  formatting.py      numbers and table cells as text

Rows
  export.py          one row per trial, as CSV, JSON or JSONL
  parquet.py         the same rows as Parquet

While a command runs
  progress.py        counts how far a run is, for displays and other processes
  progress_view.py   progress bars and lines on standard error
  typed_commands.py  commands in hints, spelled as the user started the program
"""

"""What people and programs get to see. Reads the journal, never the engine.

summary.py   what the outcomes of a run, or of its shards, add up to
figures.py   how numbers are written
documents.py the one JSON document of all suites
terminal.py  header, tables, what to try next
progress.py  while it runs
markdown.py  report.md
export.py    one row a trial, for spreadsheets and scripts
health.py    what `doctor` found
"""

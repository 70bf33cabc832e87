"""What people and programs get to see. Reads the journal, never the engine.

summary.py   what the outcomes of a run, or of its shards, add up to
figures.py   how numbers are written
documents.py the one JSON document of all suites
terminal.py  header, tables, what to try next
progress.py  while it runs
markdown.py  report.md
comparison.py two arms side by side
lift.py      each provider against the baselines
failures.py  what went wrong, one by one
estimates.py what a run would take
entries.py   what can be named
inspect_log.py logs that Inspect reads
export.py    one row a trial, for spreadsheets and scripts
health.py    what `doctor` found
"""

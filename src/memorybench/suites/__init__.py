"""The suites: what is measured, and how a run of any suite is made.

suite.py       Suite, Command, PreparedRun: what a suite consists of
spec.py        Spec and flag(): what a run depends on; command line and Python arguments follow from it
registry.py    our suites, and those of installed packages
starting.py    checks a run that begins or goes on; run_row.py: what the journal records of it
running.py     performs a run
finished.py    reports of runs that have ended; exit codes
wiring.py      Wiring: how suites get providers, models, stores and data
stored_run.py summary.py comparison.py report_parts.py inspect_log.py   from saved runs to reports
answering.py ingest.py judge_prompts.py estimates.py thresholds.py   shared by suites
calibration.py `judge calibrate`
bench/ audit/ extraction/ hygiene/   one folder per suite: suite, spec, prepare, plan, measures, report
"""

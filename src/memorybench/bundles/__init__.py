"""Bundles: one file with a run that others can open, recompute and check.

making.py contents.py rows.py documents.py   make a bundle from a run: its rows, and descriptions for other tools
archive.py      the zip file: writes reproducible bytes, and checks everything that it reads
signing.py      signatures
verification.py checks a bundle
bundled_run.py  the run of the bundle that is checked
claims.py       what was checked, and with which result
trial_claims.py score_claims.py judge_claims.py data_claims.py report_claims.py   one kind of check each
rejudging.py    asks another judge about a sample
leaderboard.py  a page of verified bundles
"""

"""Reads and writes the results of runs: in one SQLite file per results folder, or in a Postgres database.

The database
  contract.py     the interface of SQLite and Postgres journals
  sqlite.py       the SQLite file, which is the default, and its checks
  postgres.py     the Postgres database
  places.py       returns the journal of a results folder
  migrations.py   the tables, as numbered migrations
  rows.py         the rows of the tables, as records
  checksums.py    detects rows that were changed after they were written
  writer.py       group commit: one thread commits the rows of all callers
  lock.py         allows one process per run

Runs
  run_opening.py  begins and continues runs
  run_writer.py   writes one run
  run_reader.py   reads runs
  run_changes.py  tags, renames and deletes runs
  merging.py      writes one run from the rows of several, or of a bundle
"""

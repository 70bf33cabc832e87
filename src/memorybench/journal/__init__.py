"""Sole owner of results on disk: one SQLite file per results folder, or a Postgres database.

contract.py    what a database must provide
sqlite.py      the SQLite file: the default
postgres.py    the Postgres database
places.py      finds the journal of a results folder
run_opening.py begins and continues runs
run_writer.py  writes one run
run_reader.py  reads runs
run_changes.py tags, renames and deletes runs
writer.py      group commit: one thread commits the rows of all callers
database.py    opens and checks the SQLite file
checksums.py   detects rows that were changed after they were written
migrations.py  the tables, as numbered migrations
rows.py        the rows of the tables, as records
lock.py        allows one process per run
"""

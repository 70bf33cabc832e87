"""Sole owner of results on disk: one SQLite file per results folder.

database.py    opens the file, or says why it can not be trusted
migrations.py  its tables, as numbered steps
writer.py      group commit: what is written outlives us, what has landed is on disk
rows.py        what the tables hold, as records
lock.py        one process per run
book.py        a run being written
shelf.py       runs being read
"""

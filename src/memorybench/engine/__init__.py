"""Performs every job the journal does not hold. Knows no suite.

run.py      workers fed by an iterator, and how a run ends
steps.py    `once`: recorded, single flight, paid work announced
gates.py    per subject: how many at once, how often, and when to leave it alone
patience.py retries, with one owner
budget.py   how much may be spent
stopping.py how work hears of Ctrl-C
signals.py  the first Ctrl-C drains, the second leaves at once
"""

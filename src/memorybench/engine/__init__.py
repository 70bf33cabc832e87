"""Performs the jobs of a plan whose outcomes the journal does not hold. Knows no suite.

run.py      workers take jobs from the plan and record outcomes
steps.py    `once`: a recorded step is not repeated
limiter.py  concurrency and rate limits of one subject
retries.py  repeats failed calls
budget.py   how much may be spent
stopping.py Ctrl-C: the first finishes running calls, the second exits
"""

"""Performs the jobs of a plan that have no outcome in the journal. Does not depend on any suite.

run.py       workers take jobs from the plan and record outcomes
steps.py     `once`: a recorded step is not repeated
leases.py    several processes share a run
following.py shows the outcomes of all processes of a run
limiter.py   concurrency and rate limits of one subject
retries.py   repeats failed calls
budget.py    how much may be spent
stopping.py  Ctrl-C: the first lets running calls finish, the second exits at once
observing.py protocols for code that receives steps and trials, such as telemetry
"""

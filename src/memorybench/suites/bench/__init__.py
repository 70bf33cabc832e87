"""Measures how well a memory system stores and finds the content of conversations.

spec.py       what a run depends on: the flags of `eval` and `score`
prepare.py    from a spec to a run
baselines.py  providers, and the baselines that they are compared with
plan.py       questions × providers as jobs, and the text of the gold evidence of each question
recorded.py   stand-ins for the providers and models of a run whose answers are judged again
scores.py     scores of a ranking
measures.py   metrics
report.py     the report
"""

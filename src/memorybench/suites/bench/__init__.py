"""Measures how well a memory system stores and finds the content of conversations.

The run
  suite.py          the suite: its commands
  spec.py           what a run depends on: the flags of `eval` and `score`
  prepare.py        from a spec to a run
  bench_run.py      the prepared run: its fingerprints and its plan
  benchmarks.py     the benchmarks of a run: questions, prompts and limits
  selection.py      which questions of a benchmark are asked
  baselines.py      providers, and the baselines that they are compared with
  estimating.py     calls and tokens of a run, before anything is spent
  plan.py           one job per question, provider and repeat, and the gold evidence that a question is stored with

Results
  scores.py         scores of a ranking
  measures.py       metrics
  contamination.py  whether questions can be answered without a memory
  report.py         the report

Scoring again
  recorded.py       objects that replace the providers and models of a run whose answers are judged again
  rescoring.py      computes scores again from recorded searches, answers and verdicts
"""

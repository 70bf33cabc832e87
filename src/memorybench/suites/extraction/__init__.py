"""Measures whether an extractor writes the facts of a conversation into a memory, and nothing else.

The run
  suite.py           the suite: its commands, and which files are its cases
  spec.py            the options of offline and online runs
  prepare.py         an offline run from its spec
  prepare_online.py  an online run from its spec
  plan.py            an offline run: one job per case
  online.py          an online run: one job per trace of an extraction that happened elsewhere
  evaluator.py       the judge of traces inside `evaluate` of LangSmith

Cases
  cases.py           cases from files, and the checks of their gold
  transcripts.py     conversations as text or turns
  gold.py            the expected change of a memory: facts kept, added and removed
  mutants.py         wrong outputs made from the expected one, to test the cases

Results
  findings.py        the change that an output makes: operations, counts, and a label for every wrong fact
  losses.py          what happened to the old facts of a memory in a trace
  scores.py          the findings as scores
  measures.py        the metrics of a run
  report.py          the report of a run
  rescoring.py       scores the recorded extractions of an offline run again
"""

"""Audits a model or memory system: recall, invented answers, changed facts, and the order of events.

The run
  suite.py         the suite: its commands and files
  spec.py          the options of a run
  prepare.py       a run from its spec
  plan.py          one job per probe and subject
  judgement.py     whether an answer is correct: by code if it is equal to a known one, otherwise by the judge
  measures.py      the metrics
  report.py        the report
  rescoring.py     scores recorded answers again

Probes that code generates, always the same for the same dataset
  generation.py    generates the probes of a dataset
  probes.py        the probes, with everything that scoring needs
  recall.py        the question for each fact
  templates.py     questions for structured facts
  cloze.py         questions with a gap for free text
  changes.py       questions about facts that changed
  events.py        what came first, and how long it was between
  history.py       which facts are current, and which were superseded
  evidence.py      the turns that state a fact
  answers.py       normalisation: equal answers, values in texts, answers in questions
  time_words.py    words such as "tomorrow", whose meaning depends on the date

Probes with a model
  probing.py       writes and verifies the probes of a dataset, as a run
  writing.py       questions that a model writes from facts and turns
  verification.py  the checks that a probe must pass, each a recorded step
  probe_file.py    probes as JSONL, to be read, edited and shared
"""

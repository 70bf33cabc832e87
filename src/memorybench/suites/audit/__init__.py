"""Audits a model or memory system: recall, invented answers, changed facts, and the order of events.

Probes that structure proves, always the same for the same dataset:
generation.py    generates the probes of a dataset
probes.py        the probes, with everything that scoring needs
recall.py        the question for each fact; templates.py for structured facts, cloze.py for free text
changes.py       what changed; events.py what came first, and how long it was between
history.py       which facts are current, and which were superseded
evidence.py      the turns that state a fact
answers.py       normalisation: equal answers, values in texts, answers in questions

Probes with a model:
writing.py       questions that a model writes from facts and turns
verification.py  the checks that a probe must pass, each a recorded step
probe_file.py    probes as JSONL, to be read, edited and shared

The audit itself:
judgement.py     whether an answer is correct: by code if it is equal to a known one, otherwise by the judge
measures.py      the metrics
plan.py          one job per probe and subject
"""

"""Audits a model or memory system: recall, invented answers, changed facts, and the order of events.

Generation of probes, without calls and always the same:
generation.py  generates the probes of a dataset; checks questions that a model wrote
probes.py      the probes, with everything that scoring needs
choosing.py    the best question for each fact
reading.py     the candidates: questions for structured facts, by grammar, and the statement itself with a gap
gates.py       what a question must pass; wellformed.py whether it reads as English
evidence.py    the turns that state a fact
rewordings.py  whether a question that a model wrote still asks for the same
grammar.py     questions for free text; patterns.py its named shapes, as data
subjects.py, clauses.py, phrases.py, verbs.py, lexicon.py  a statement taken apart
history.py     which facts are current, and which were superseded
conflict.py    what changed; temporal.py what came first, and how long it was between
absent.py      what is not told; absent_topics.py what to ask then, as data
words.py       words by stem, numbers and dates by worth

The audit itself:
judgement.py   whether an answer is correct, by code if code is certain: options.py which option it takes, refusals.py
               whether it says that it does not know, standings.py as what a value is named; spoken.py takes it apart
measures.py    the metrics
plan.py        one job per probe and subject; questions that a model writes
"""

"""Does this extractor write down what was said, and nothing else?

cases.py       what an extractor is put to, read strictly: a gold that contradicts itself is refused
transcripts.py conversations as text or turns
gold.py        what should become of the memory: which facts are kept, added and removed
findings.py    what became of it: operations, counts in both views, and a label for every leftover
scores.py      the findings as scores
measures.py    what is reported
mutants.py     wrong outputs made from the gold one: a case that none of them fails is a hole
plan.py        cases × one extractor as jobs
online.py      extractions that happened elsewhere, examined the same way
losses.py      what such a memory no longer says, and whether it had to go
evaluator.py   the same for one run, inside LangSmith's own `evaluate`
"""

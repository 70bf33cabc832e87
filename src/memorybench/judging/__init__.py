"""Is this response right? Asked of a model, read strictly, and never guessed.

verdicts.py      read_verdict: what a judge decided, or Unreadable
remarks.py       whether what it says besides bears that out
prompts.py       the named judge prompts, and which of them serves a question
delimiters.py    foreign text between marks that it can not close
injection.py     responses that talk to the judge
plain.py         foreign text as a reader sees it
judge.py         Judge: prompt, call, verdict, as steps
canaries.py      what a judge says of responses whose worth is known
canary_cases.py  those responses, by prompt

facts.py             a memory of any shape as atomic facts
facts_reading.py     what a fact says: words, quantities, names, and what is denied or in doubt
facts_quantities.py  numbers, money, times and dates in one form
facts_signs.py       which patterns a text has anything for
matching.py          compare: do two facts say the same? by code
matching_pairs.py    which fact is which, one-to-one and by coverage
matching_judge.py    EntailmentJudge: what code can not decide
matching_canaries.py what that judge says of pairs whose relation is known
enumeration.py       Enumerator: what was said and what was written down, listed in calls of their own
"""

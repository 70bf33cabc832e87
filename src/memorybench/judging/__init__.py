"""Judges: a model decides whether a response is right; an unclear verdict is Unreadable, never a guess.

verdicts.py      read_verdict: parses the reply of a judge
prompts.py       chooses and renders the judge prompt of a question (texts: catalog/prompts/), and encloses untrusted
                 text in delimiters that it cannot close
judge.py         Judge: renders the prompt, calls the model, records the verdict; detects responses that address it
canaries.py      check_judge: tests a judge with responses of known correctness
canary_cases.py  those responses, by prompt

facts.py             a memory of any shape as atomic facts
facts_reading.py     what a fact says: words, quantities, names, and what is denied or in doubt
facts_quantities.py  numbers, money, times and dates in one form
facts_signs.py       which patterns a text has anything for
matching.py          compare: do two facts say the same? by code
matching_pairs.py    which fact is which, one-to-one and by coverage
matching_judge.py    EntailmentJudge: what code can not decide
matching_canaries.py what that judge says of pairs whose relation is known
enumeration.py       Enumerator: lists the facts stated and the facts written, in separate calls
"""

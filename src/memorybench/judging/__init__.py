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
"""

"""What is asked of a memory, and where it comes from.

config.py          what a benchmark config may say
config_reading.py  read_benchmark: from a file to a config, or to what is wrong with it
prompts.py         what a prompt must and may contain
sources.py         where the data lies, whether it is what it was, and `pull`, which alone fetches it
items.py           the items of a file, one at a time, however large it is
mapped.py          open_mapped: the dataset that a config describes
context.py         from an item to sessions and turns, and to where the gold lies
evidence.py        from the ids that a question cites to turns and sessions
choices.py         multiple choice
dates.py           dates as datasets write them
errata.py          corrections of an answer key
nolima.py          needles in books: what a mapping can not say
starter.py         the benchmark that ships with the package
audit.py           conversations and their facts: load_audit, problems_of
audit_file.py      the keys of such a file
audit_checks.py    what must agree in it
audit_dates.py     dates in it
audit_conversion.py  such datasets from LoCoMo and LongMemEval
"""

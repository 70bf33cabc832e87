"""Benchmarks as datasets: questions, haystacks and gold evidence.

config.py          the keys of a benchmark config
config_reading.py  read_benchmark: reads and checks a config file
data_checks.py     checks the section data of a config
schema_checks.py   checks the section schema
scoring_checks.py  checks question types, prompts and the method
prompts.py         the variables of prompts
sources.py         the data files of a benchmark, their state and checksums
locating.py        source_of: finds the data files
folders.py         the data files of a folder: names, globs, joins
file_names.py      what the name of a data file says about it
pulling.py         pull: downloads data files
checksums.py       remembers the checksum of a large file
archives.py        unpacks zip archives, with limits
items.py           streams the items of a file of any size
joins.py           items with their position, and with the content of other files
paths.py           paths of a config, and names such as @key
parsing.py         lists in texts
index.py           the index of a large file, which makes the next run start faster
mapped.py          open_mapped: a dataset described by a config (LoCoMo, LongMemEval and others)
fingerprints.py    the fingerprint of a dataset
item_reader.py     reads items: histories, questions, irregularities
question_reader.py reads one question: text, gold, choices, evidence, labels
question_paths.py  the paths of a config to questions and their fields
ids.py             ids of items and questions, and errors for missing fields
survey.py          what was read: counts, samples, what was left out
context.py         sessions and gold marks of an item
turns.py           turns of a session
item_context.py    the sessions and turns of an item as data
choices.py         the choices of a question, and which are right
evidence.py        resolves cited evidence ids to turns and sessions
dates.py           parses dates
errata.py          corrected answer keys
nolima.py          NoLiMa: needles in books
starter.py         the benchmark that ships with the package
audit.py           audit datasets: load_audit, problems_of
audit_file.py      the keys of an audit file
audit_checks.py    consistency checks of an audit file
audit_conversion.py  converts LoCoMo and LongMemEval into audit datasets
"""

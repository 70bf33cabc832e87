"""Benchmarks as datasets: questions, haystacks and gold evidence.

The config of a benchmark
  config.py          the keys of a benchmark config
  config_reading.py  read_benchmark: reads and checks a config file
  data_checks.py     checks the section data of a config
  schema_checks.py   checks the section schema
  scoring_checks.py  checks question types, prompts and the method
  prompts.py         answer and judge prompts, and their variables
  paths.py           paths of a config, and names such as @key
  question_paths.py  the paths of a config to questions and their fields

Data files
  sources.py         the data files of a benchmark: present, missing or changed
  locating.py        source_of: finds the data files
  folders.py         which files of a folder are read
  file_names.py      whether a name is that of an archive or a glob
  pulling.py         pull: downloads data files
  checksums.py       remembers the checksum of a large file
  archives.py        unpacks zip archives, with limits
  index.py           the index of a large file, which makes the next run start faster

Items of a file
  items.py           streams the items of a file of any size
  joins.py           items with their position, and with the content of other files
  parsing.py         lists in texts
  log_lines.py       messages in the lines of a text
  dates.py           parses dates
  ids.py             checks that ids are unique; errors for missing fields

Questions and histories of an item
  item_reader.py     reads items: their histories and questions; counts irregularities
  question_reader.py reads one question: text, gold, choices, evidence, labels
  choices.py         the choices of a question, and which are right
  gold.py            rubrics, and texts that a right answer must or must not contain
  evidence.py        resolves cited evidence ids to turns and sessions
  context.py         reads the sessions and gold marks of an item
  turns.py           reads the turns of a session
  item_context.py    the sessions and turns of an item as data

Datasets
  mapped.py          open_mapped: a dataset described by a config (LoCoMo, LongMemEval and others)
  nolima.py          NoLiMa: needles in books
  locomo_plus.py     Locomo-Plus: short dialogues inserted into long conversations
  starter.py         the benchmark that ships with the package
  errata.py          corrected answer keys
  fingerprints.py    the fingerprint of a dataset
  survey.py          what was read from a dataset: counts, samples, and what was left out

Audit datasets
  audit.py             load_audit, problems_of: conversations and the facts they state
  audit_file.py        the keys of an audit file
  audit_checks.py      consistency checks of an audit file
  audit_conversion.py  converts LoCoMo and LongMemEval into audit datasets
"""

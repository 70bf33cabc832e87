"""The types that every other package uses. Imports pydantic, msgspec and the standard library only.

Questions and results
  conversation.py     turns, sessions, haystacks, and memories
  questions.py        questions with their gold answers, and datasets
  trials.py           one case for one subject, and its outcome
  measures.py         scores of one question, measures of many outcomes

Protocols that other packages implement
  contracts.py        providers, models and embedders
  stores.py           memory stores that hygiene scenarios use
  agents.py           agents, and the record of their tool calls
  extraction.py       extractors, sources of traces, receivers of scores
  operations.py       an agent's memory searches and writes, read from its traces

A run
  plans.py            plan, jobs and steps: what a suite gives the engine
  retry_defaults.py   how often and when failed calls are repeated
  spending.py         adds up the costs of calls
  garbage.py          collects garbage rarely while many objects are created
  timing.py           how long a call took, without memorybench's own waiting
  uses.py             what a config runs and contacts, and what the user allows
  reasons.py          counts failures by their message

Data
  records.py          the base class of stored values, and canonical JSON
  packed.py           a sequence that is kept compressed in memory
  report_sections.py  a report as data: tables, cases, notes
  genai_names.py      names of OpenTelemetry's conventions for generative AI
  errors.py           all errors that memorybench raises on purpose
"""

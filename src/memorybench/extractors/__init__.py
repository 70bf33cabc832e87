"""Extractors under test: each reads a conversation and returns the new memory.

plugin.py              what an extractor type declares, and how it is registered
baselines.py           type baseline: amnesiac and hoarder
callable_extractor.py  type callable: a Python function
command.py             type command: a program
http.py                type http: an endpoint
provider.py            type provider: the store of a memory provider
reference.py           type reference: memorybench's prompt and any model
states.py              conversations and memories in the form in which extractors get and return them
config.py              the keys of a config file
config_reading.py      reads and checks a config file
"""

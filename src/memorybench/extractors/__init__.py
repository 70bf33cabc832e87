"""Extractors under test: each reads a conversation and gives back the memory as it should be afterwards.

states.py              what an extractor is handed, and what counts as a memory when it comes back
callable_extractor.py  a Python function that compose has loaded
command.py             a program: JSON on standard input, JSON on standard output
http.py                an endpoint described by YAML
provider.py            what a memory provider's store holds after adding
reference.py           ours, over any model; its prompt is in the catalog
baselines.py           amnesiac and hoarder: what storing nothing, or everything, is worth
config.py              what an extractor's YAML file may say
config_reading.py      load_extractor_config: from a file to a config, checked
"""

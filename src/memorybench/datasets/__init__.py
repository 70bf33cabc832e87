"""What is asked of a memory, and where it comes from.

config.py          what a benchmark config may say
config_reading.py  read_benchmark: from a file to a config, or to what is wrong with it
prompts.py         what a prompt must and may contain
metric_names.py    what a config may ask to see
starter.py         the benchmark that ships with the package
"""

"""Agents under test: what is given a memory and a prompt, and is watched.

config.py          the keys of an agent's YAML file
config_reading.py  from the file to a checked config
opening.py         open_agent: from a config to an agent that works
command.py         any command-line agent, in a home of its own
output.py          text, tokens and calls, read from what a program has printed
actions.py         what our own agent may do in a turn
builtin.py         our own small one, over any model
recording.py       any program behind the recorder, to see what it does
"""

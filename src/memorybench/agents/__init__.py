"""Agents under test: each gets a memory and a prompt, and its tool calls are recorded.

config.py          the keys of an agent's YAML file
config_reading.py  reads and checks that file
command.py         any command-line agent
output.py          reads answer, tokens and tool calls from a program's output
builtin.py         memorybench's own small agent, which uses any model
recording.py       any program behind the recording proxy
"""

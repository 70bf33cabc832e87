"""What hygiene drives: memories behind the contract of vocabulary/stores.py.

reference.py       the embedded default: facts in one SQLite file, a write path that refuses credentials
facts_file.py      that file: its tables, and how it is opened
curator.py         which facts are the same, and which were superseded: proposals, from facts alone
config.py          the keys of a store's YAML file
config_reading.py  from the file to a checked config
opening.py         open_store: from a config to a store that works
mcp_store.py       any MCP memory server, by the tools that its config names
mcp_operations.py  those tools, parsed: what is called, and how facts are read from it
provider_store.py  any provider: what it can not do is lacking
command_store.py   any program that answers one JSON line for each JSON line
programs.py        commands and environments in which ${folder} stands
"""

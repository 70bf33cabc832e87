"""Memory stores that the suite `hygiene` tests. They implement the interface in core/stores.py.

reference.py       the default: facts in one SQLite file; refuses credentials
curator.py         proposes which facts to merge or remove
config.py          the keys of a store's YAML file
config_reading.py  reads and checks that file
opening.py         open_store: opens a store from a config
mcp_store.py       any MCP memory server
mcp_operations.py  the tools of such a server: templates of calls, and how facts are read
mcp_calls.py       what an agent's call of one of these tools does to the memory
provider_store.py  any provider of memorybench
file_store.py      the memory files of an agent in its private home
command_store.py   any program that answers one JSON line per JSON line
programs.py        commands and environments that may contain ${folder}
"""

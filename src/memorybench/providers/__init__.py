"""Memory systems under test.

Providers of this process, one file each
  bm25.py                  lexical search over turns
  dense.py                 vector search over turns
  hybrid.py                weighted sum of bm25, dense, speaker and session scores
  aqrag.py                 a model writes the questions that each chunk answers
  contextual_retrieval.py  a model writes a context for each chunk
  agent_files.py           memory-md and memory-tool: files that an agent writes and reads whole
  mem0_oss.py              the package mem0ai
  langmem.py               the package langmem
  mnemosyne.py             the package mnemosyne-memory

MCP servers
  mcp.py                   registers the adapter `builtin:mcp`; loads without the MCP SDK
  mcp_provider.py          any MCP memory server, used through its tools
  config_mcp.py            the keys of the section mcp of a card
  config_mcp_reading.py    checks that section

Services and other code
  http/                    any service that speaks HTTP and JSON, described by a YAML card; containers of docker compose
  adapters.py              a user's own Python class: `adapter: ./file.py:Class`
  openapi.py               guesses the requests of a service from its OpenAPI description, for `init provider`

What providers share
  plugin.py                what a provider declares, what it gets when it is opened, and how it is registered
  config/                  the keys of a provider's card, and the checks when it is read
  storage/                 what the providers of this process share: stores on disk, indexes, chunking
  process_environment.py   sets environment variables for libraries that read them on import

The YAML cards are in catalog/providers/. A new provider of this process is one file here, its card, and one line under
`[project.entry-points."memorybench.providers"]` in pyproject.toml.
"""

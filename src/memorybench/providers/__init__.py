"""Memory systems under test.

One file per provider: aqrag, bm25, contextual_retrieval, dense, hybrid, mem0_oss, mcp (any MCP server).

plugin.py      what a provider declares about itself and gets to open itself; how it is registered
adapters.py    a user's own Python class: `adapter: ./file.py:Class`
scripted.py    the test double
http/          any service that speaks HTTP and JSON, described by a YAML card; containers started by docker compose
config/        the keys of a provider's card, and the checks when it is read
storage/       what the providers of this process share: stores on disk, indexes, chunking

The YAML cards are in catalog/providers/. A new provider of this process is one file here, its card, and one line under
`[project.entry-points."memorybench.providers"]` in pyproject.toml.
"""

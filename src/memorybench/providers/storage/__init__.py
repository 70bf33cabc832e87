"""What the providers of this process share: stores on disk, indexes, chunking.

indexed.py         base class: a store with one index per scope
turns.py           base class and store of providers that search turns
chunk_memory.py    base class of providers that search chunks
chunking.py        splits sessions into chunks
chunks.py          chunks and their vectors in SQLite
postgres_store.py  chunks and their vectors in Postgres, searched by pgvector
sqlite_store.py    base class of the SQLite files with memories
scope_folders.py   a folder per scope, for systems with their own files
scope_pool.py      opens one process or database per scope, up to a number at the same time
loopback.py        serves memorybench's model and embedder to libraries, as OpenAI's API
paths.py           finds a file that a config names
"""

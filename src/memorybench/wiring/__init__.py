"""From names to live objects, and the only reader of the environment.

live.py         LiveWiring: what suites receive as `Wiring`
environment.py  variables, secrets, and the fault that tests ask for
models.py providers.py stores.py agents.py extractors.py datasets.py traces.py   one kind of object each
data.py         downloads of benchmark data
code.py         functions that a config names
descriptions.py health.py validation.py   what `describe`, `doctor` and `validate` show
"""

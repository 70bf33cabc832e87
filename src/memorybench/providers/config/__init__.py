"""The keys of a provider's YAML card, and the checks when it is read.

reading.py    read_provider: reads a card with all checks
provider.py   ProviderConfig: all keys of a card
sections.py   the sections without requests: connection, docker, limits, local
requests.py   the section endpoints: requests, waiting, reading results
variables.py  checks the variables of each request, and its scope
extending.py  cards that extend another one, and expressions with settings
retired.py    requests that a service no longer accepts
"""

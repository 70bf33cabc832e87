"""Turns names of providers, models, stores … into open objects. Only this package reads environment variables.

Names to objects
  live.py            LiveWiring: what suites receive as `Wiring`
  models.py          models
  providers.py       providers
  stores.py          memory stores
  agents.py          agents
  extractors.py      extractors
  datasets.py        datasets, and previews of their data
  traces.py          traces and operations from files or LangSmith; scores for Langfuse
  data.py            finds, downloads and verifies benchmark data
  code.py            functions that a config or a flag names
  renaming.py        gives a provider or dataset the name that the user chose

What a run may do
  environment.py     environment variables, the redactor, and the fault for tests
  credentials.py     tells the redactor the credentials that configs use
  output.py          removes secrets from everything that is printed
  consent.py         whether a config may run code and send variables
  isolation.py       whether a run can keep its data separate from other data
  source_code.py     digests of the user's own code that a run uses

Commands
  descriptions.py    what `describe` shows
  health.py          what `doctor` checks
  validation.py      what `validate` says about a config or results file
  starters.py        the files that `init` writes
"""

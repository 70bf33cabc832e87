"""Defaults for retrying failed calls. engine/retries.py performs the retries."""

TRIES = 4
"""How often a call is tried at most: once, and three retries."""
FIRST_DELAY = 0.5
"""The most seconds before the first retry of a model or trace source, doubled for each further one. A delay is a random
time of at least half of that."""
PROVIDER_FIRST_DELAY = 2.0
"""The same for a memory provider, unless `rateLimit.retryDelayMs` says otherwise."""
UNREACHABLE = 10
"""The run pauses after this many failed connections to one subject in a row."""
LONGEST_DELAY = 120.0
"""The most seconds between two tries. If the service asks for a longer wait (Retry-After), the trial fails at once."""

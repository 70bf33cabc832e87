"""Defaults for retrying failed calls. engine/retries.py performs the retries."""

TRIES = 4
"""How often a call is tried at most: once, and three retries."""
FIRST_DELAY = 0.5
"""Seconds before the first retry of a model or trace source. Each further delay is twice as long."""
PROVIDER_FIRST_DELAY = 2.0
"""Seconds before the first retry of a memory provider, unless `rateLimit.retryDelayMs` says otherwise."""
UNREACHABLE = 10
"""The run pauses after this many failed connections to one subject in a row."""
LONGEST_DELAY = 120.0
"""The most seconds between two tries. If the service asks for a longer wait (Retry-After), the trial fails at once."""

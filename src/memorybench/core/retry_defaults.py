"""Defaults for retrying failed calls. engine/retries.py performs the retries."""

TRIES = 4
"""How often a call is tried at most: once, and three retries."""
FIRST_DELAY = 0.5
"""The longest delay in seconds before the first retry of a call to a model or trace source. It is doubled for each
further retry. The actual delay is a random part of it, at least half."""
PROVIDER_FIRST_DELAY = 2.0
"""As FIRST_DELAY, for calls to a memory provider whose config does not set `rateLimit.retryDelayMs`."""
UNREACHABLE = 10
"""After this many failed connections to one subject in a row, the run stops and can be resumed."""
LONGEST_DELAY = 120.0
"""The most seconds between two tries. If the service asks for a longer wait (Retry-After), the trial fails at once."""

"""Defaults for retrying failed calls. engine/retries.py performs the retries."""

TRIES = 4
"""Calls in total: one, and three retries."""
FIRST_DELAY = 0.5
"""Seconds before the first retry of a model or trace source; doubled for each further one."""
PROVIDER_FIRST_DELAY = 2.0
"""The same for memory providers, unless `rateLimit.retryDelayMs` says otherwise."""
UNREACHABLE = 10
"""Failed connections to one subject, without a success in between, after which the run pauses."""
LONGEST_DELAY = 120.0
"""Maximum seconds between two tries. A longer Retry-After ends the trial."""

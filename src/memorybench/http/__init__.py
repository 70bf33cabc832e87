"""HTTP requests with guards: size limits, deadlines, redirects, forbidden addresses, redaction."""

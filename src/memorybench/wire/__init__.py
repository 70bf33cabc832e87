"""The network, and the guards around it: caps, deadlines, redirects, redaction."""

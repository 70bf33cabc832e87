"""HTTP requests with guards: size limits, deadlines, redirects, forbidden addresses, redaction.

client.py     Http: sends requests and reads replies, with limits
replies.py    replies, and the errors that their statuses mean
downloads.py  downloads large files, and continues interrupted ones
addresses.py  to which addresses requests may be sent
routes.py     proxies, name resolution and the pool of connections
tls.py        certificates, and why a secure connection failed
config.py     the section `auth` and other keys of HTTP configs
"""

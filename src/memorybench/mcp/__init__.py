"""Model Context Protocol: clients, and the recording proxy that agents connect to."""

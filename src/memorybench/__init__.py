"""memorybench tells how good an AI agent's memory is."""

__version__ = "0.1.0"

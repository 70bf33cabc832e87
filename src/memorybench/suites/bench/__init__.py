"""How well does this memory system store and find what was said?

arms.py     what is compared: providers and baselines
ingest.py   fills a scope once, for every question on it, and clears it after the last
scores.py   what a ranking is worth
measures.py what is reported
plan.py     questions × arms as jobs
"""

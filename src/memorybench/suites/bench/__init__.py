"""How well does this memory system store and find what was said?

arms.py     what is compared: providers and baselines
scores.py   what a ranking is worth
measures.py what is reported
plan.py     questions × arms as jobs
"""

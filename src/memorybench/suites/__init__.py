"""What is measured. Each suite turns cases and subjects into a plan; none knows providers, models or the engine.

answering.py  context, answer, scores of an answer: shared by suites
bench/        memory providers × benchmarks
"""

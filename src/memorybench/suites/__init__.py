"""What is measured. Each suite turns cases and subjects into a plan; none knows providers, models or the engine.

answering.py  context, answer, scores of an answer: shared by suites
stored_run.py one run, or the shards of one, read from the journal
summary.py    measures, counts and costs of a stored run
comparison.py two subjects compared question by question; differences from baselines
report_sections.py
              the parts of a report that all suites share, and the JSON document
inspect_log.py
              a run as logs for Inspect
ingest.py     fills a scope once, for every question on it, searches it, and clears it after the last
mixing.py     in which order jobs are taken, so that ingests run side by side
bench/        memory providers × benchmarks
audit/        probes × models or memories
hygiene/      scenarios × stores or agents
extraction/   cases, or traces from elsewhere × extractors
"""

"""Performs one run with several processes: a worker that joins a run, and workers on a Ray cluster."""

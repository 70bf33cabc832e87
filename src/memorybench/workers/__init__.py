"""Performs one run with several processes: a worker that joins a run, and workers on a Ray cluster.

placement.py    decides whether this process or a Ray cluster performs a run
joining.py      join_run: joins a run that another process began
ray_cluster.py  starts workers on a Ray cluster and follows them
ray_worker.py   one worker on a Ray cluster
"""

"""Performs one run with several processes: a worker that joins a run, and workers on a Ray cluster.

placement.py    performs a run in this process or on a Ray cluster
joining.py      join_run: joins a run that another process began
ray_cluster.py  starts workers on a Ray cluster and follows them
ray_worker.py   one worker on a Ray cluster
"""

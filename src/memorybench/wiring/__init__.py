"""Where names become live objects, and the only reader of the environment.

environment.py  variables, secrets, the fault that tests ask for
health.py       what `doctor` finds
"""

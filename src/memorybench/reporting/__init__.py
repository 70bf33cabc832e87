"""What people and programs get to see. Reads the journal, never the engine.

health.py  what `doctor` found
"""

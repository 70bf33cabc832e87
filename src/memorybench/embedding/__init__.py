"""Texts into vectors. The scripted double ships beside the real ones."""

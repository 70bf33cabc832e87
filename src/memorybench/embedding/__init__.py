"""Embedders, which turn texts into vectors, and a scripted one for tests."""

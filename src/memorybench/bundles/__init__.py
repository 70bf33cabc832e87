"""Bundles: one file with a run that others can open, recompute and check."""

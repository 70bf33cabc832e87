"""Numbers about outcomes: what one answer is worth, what many say together, and how sure that is."""

"""Memory systems under test. Each module opens one kind with its `open_…`; the scripted double ships beside them."""

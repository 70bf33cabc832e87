"""The command line: one file per verb. Large modules are imported only when a verb needs them."""

"""Runs the command line: `python -m memorybench` is the same as `memorybench`."""

import os
import sys

# `python -m` puts the working folder first: its files would hide installed packages, and its folders could register
# plug-ins. The command `memorybench` imports installed packages only, and so does this.
if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from memorybench.cli.main import main

sys.exit(main())

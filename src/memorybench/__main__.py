"""`python -m memorybench` is `memorybench`."""

import sys

from memorybench.cli.main import main

sys.exit(main())

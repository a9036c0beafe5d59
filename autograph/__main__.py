"""`python -m autograph` is the `autograph` command."""

import sys

from autograph.cli import main

sys.exit(main())

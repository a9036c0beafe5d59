"""Whether the slow part of the tests runs too: `AUTOGRAPH_FULL_TESTS=1`. Compiling takes most of its time."""

import os

FULL = os.environ.get("AUTOGRAPH_FULL_TESTS") == "1"

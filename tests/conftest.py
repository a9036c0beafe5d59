"""What all the tests share."""

import os

# Where users get a warning and the interpreter's answer, tests get the compiler's error.
os.environ["AUTOGRAPH_STRICT"] = "1"

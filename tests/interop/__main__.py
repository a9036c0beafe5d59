"""`python -m tests.interop`: functions of ours inside the libraries that people use, with the real libraries.

Runs the tests of this folder and the pages about such use; a library that isn't installed counts as a failure. Further
arguments go to pytest. It takes about a minute.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.test_docs import GUESTS

LIBRARIES = sorted(set(GUESTS.values()))


def main(arguments: list[str]) -> int:
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    folder = Path(__file__).resolve().parent
    pages = [
        f"{folder.parent / 'test_docs.py'}::test_blocks_run_and_print_what_the_page_says[{name}]" for name in GUESTS
    ]
    command = [sys.executable, "-m", "pytest", "-q", str(folder), *pages, *arguments]
    failed = subprocess.run(command, cwd=folder.parent.parent, check=False).returncode
    for name in missing:
        print(f"not installed, so not tested: {name} (pip install -e '.[{name}]')")
    return int(bool(failed or missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

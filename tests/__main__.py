"""`python -m tests`: everything that must hold before a change is handed in, each step with its time.

    ruff check, ruff format --check, mypy, pytest

All of them run, whatever the earlier ones say; the exit code is 1 if any of them fails. With `--quick` only a subset of
the tests runs, some of every file (`tests/quick.py`), which takes five minutes. Other arguments go to pytest. Without
any, tests run in as many processes as there are cores, up to four, each file in one.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def steps(arguments: list[str]) -> dict[str, list[str]]:
    """What runs, by name: the arguments of `python -m`."""
    plugin = ["-p", "tests.quick"] if "--quick" in arguments else []
    rest = [argument for argument in arguments if argument != "--quick"]
    if not arguments:
        # In the order of their names, as in one process.
        rest = ["-n", str(min(os.cpu_count() or 1, 4)), "--dist", "loadfile", "--no-loadscope-reorder"]
    return {
        "ruff check": ["ruff", "check", "."],
        "ruff format": ["ruff", "format", "--check", "."],
        "mypy": ["mypy"],
        "pytest": ["pytest", *plugin, *rest],  # last: its closing line is what a reader of the log looks for
    }


def main() -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return 0
    failed, spent = [], []
    for name, command in steps(sys.argv[1:]).items():
        print(f"== {name}", flush=True)
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False)
        spent.append(f"{name} {time.perf_counter() - began:.0f} s")
        if done.returncode != 0:
            failed.append(name)
    print(f"== {', '.join(spent)}; {'failed: ' + ', '.join(failed) if failed else 'all good'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

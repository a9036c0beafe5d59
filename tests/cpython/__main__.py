"""`python -m tests.cpython [TARGET ...]`: CPython's own tests on converted standard-library modules.

Each target's tests run twice, on the module as it is and with every function and method of it converted in place. A
test that fails only converted is a new failure; the exit code is 1 if there is any. Without arguments all targets run
(some minutes); `--list` names them, `--verbose` shows the new failures' tracebacks.
"""

from __future__ import annotations

import argparse
import platform
import sys

from tests.cpython.compare import compare
from tests.cpython.modules import TARGETS


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.cpython", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="what to convert and test (default: everything)")
    parser.add_argument("--list", action="store_true", help="name the targets and stop")
    parser.add_argument("--verbose", action="store_true", help="show the tracebacks of new failures")
    options = parser.parse_args()
    if options.list:
        print("\n".join(TARGETS))
        return 0
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target {', '.join(unknown)}; --list names them")
    print(f"Python {platform.python_version()}: target, functions converted, tests, seconds native and converted")
    bad, functions, tests = [], 0, 0
    for target in options.targets or TARGETS:
        found = compare(target)
        functions, tests = functions + found.converted, tests + found.ran
        print(
            f"{target:14}{found.converted:6}{found.ran:6}{found.native_seconds:8.1f}{found.seconds:8.1f}  "
            + ("good" if found.good else f"NEW FAILURES: {len(found.new_failures)}"),
            flush=True,
        )
        if not found.good:
            bad.append(target)
            for name, text in found.new_failures.items():
                print("    " + name, flush=True)
                if options.verbose:
                    print(text, flush=True)
    print(f"{functions} functions, {tests} tests; " + (f"new failures in {', '.join(bad)}" if bad else "all good"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

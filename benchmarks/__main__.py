"""`python -m benchmarks [NAMES] [--quick]`: times the workloads and writes docs/benchmarks.md."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 1 if a workload's results disagree."""
    # Only now: the libraries read these settings when they are imported, and first calls are to find no kernels.
    # The background compiler may still be writing a kernel when the folder goes.
    cache = tempfile.TemporaryDirectory(prefix="autograph-benchmarks-", ignore_cleanup_errors=True)
    os.environ["AUTOGRAPH_CACHE_DIR"] = cache.name
    with cache:
        from benchmarks import call, collatz, conversion, elementwise, harness, logistic, loop_gradients, report, rnn

        cases = {
            case.name: case
            for module in (logistic, collatz, elementwise, rnn, call, loop_gradients, conversion)
            for case in module.CASES
        }
        parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Times autograph beside its peers.")
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"workloads (default: all): {', '.join(cases)}")
        parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: does everything work?")
        parser.add_argument("--output", type=Path, help="the page (default: docs/benchmarks.md, full runs only)")
        options = parser.parse_args(arguments)
        if unknown := [name for name in options.names if name not in cases]:
            parser.error(f"no workload named {', '.join(unknown)}; there are {', '.join(cases)}")

        results, failed = [], False
        if options.quick:
            print("Quick: the sizes are smaller than the titles say.\n")
        for name in options.names or cases:
            try:
                rows = harness.run(cases[name], options.quick)
            except Exception as error:
                print(f"{cases[name].title}\n  {type(error).__name__}: {error}\n", file=sys.stderr)
                failed = True
                continue
            results.append((cases[name], rows))
            print(report.plain(cases[name].title, report.cells(rows)), flush=True)

        full = not options.names and not options.quick
        path = options.output or (PAGE if full and not failed else None)
        if path is not None:
            path.write_text(report.page(results, report.import_times()), encoding="utf-8")
            print(f"wrote {path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

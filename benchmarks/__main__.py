"""`python -m benchmarks [--only NAME] [--quick] [--plots]`: times the workloads and writes docs/benchmarks.md."""

import argparse
import compileall
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 1 if a workload's results disagree."""
    # Only now: the libraries read these settings when they are imported, and first calls are to find no kernels.
    # The background compiler may still be writing a kernel when the folder goes.
    cache = tempfile.TemporaryDirectory(prefix="autograph-benchmarks-", ignore_cleanup_errors=True)
    os.environ["AUTOGRAPH_CACHE_DIR"] = cache.name
    write_bytecode()
    with cache:
        from benchmarks import harness, peers, report, workloads

        cases = workloads.cases()
        parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Times autograph beside its peers.")
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"workloads (default: all): {', '.join(cases)}")
        parser.add_argument("--only", action="append", default=[], metavar="NAME", help="the same; names may end in *")
        parser.add_argument("--alone", action="store_true", help="ours only, without peers")
        parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: does everything work?")
        parser.add_argument(
            "--plots", action="store_true", help="time against size instead: writes docs/benchmarks_*.svg"
        )
        parser.add_argument("--output", type=Path, help="the page (default: docs/benchmarks.md, full runs only)")
        options = parser.parse_args(arguments)
        if options.plots:
            from benchmarks import plots

            plots.draw(DOCS, options.quick)
            return 0
        names = chosen(parser, [*options.names, *options.only], list(cases))

        results, failed = [], False
        if options.quick:
            print("Quick: the sizes are smaller than the titles say.\n")
        for name in names or cases:
            try:
                rows = harness.run(cases[name], options.quick, (peers.AUTOGRAPH,) if options.alone else None)
            except KeyboardInterrupt:
                print("Interrupted: what has been measured so far counts.", file=sys.stderr)
                break
            except Exception as error:
                print(f"{cases[name].title}\n  {type(error).__name__}: {error}\n", file=sys.stderr)
                failed = True
                continue
            results.append((cases[name], rows))
            print(report.plain(f"{cases[name].title} ({name})", report.cells(rows)), flush=True)

        full = not names and not options.quick and not options.alone
        path = options.output or (PAGE if full and not failed else None)
        if path is not None:
            path.write_text(report.page(results, report.processes(options.quick)), encoding="utf-8")
            print(f"wrote {path}")
    return 1 if failed else 0


def write_bytecode() -> None:
    """Fresh processes find our modules compiled, as those of an installed package are, whatever Python is told."""
    for package in ("autograph", "runtime", "benchmarks"):
        compileall.compile_dir(DOCS.parent / package, quiet=2)


def chosen(parser: argparse.ArgumentParser, patterns: Sequence[str], known: Sequence[str]) -> list[str]:
    """The workloads that the patterns name, in the order of the list; ends the program if one names none."""
    from fnmatch import fnmatchcase

    unknown = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in known)]
    if unknown:
        parser.error(f"no workload named {', '.join(unknown)}; there are {', '.join(known)}")
    return [name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns)]


if __name__ == "__main__":
    sys.exit(main())

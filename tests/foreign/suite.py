"""Runs the tests of a library in several processes, and prints a table: passed, failed, skipped, and why."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.progress import is_possible, progress

ROOT = Path(__file__).resolve().parents[2]
Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Suite:
    """A library's tests.

    package   the folder that is on the path, with the library in it
    tests     the folder of tests in it
    pattern   what files of tests are called
    left_out  parts of paths that aren't run, each with the reason
    group     the row of the table that a file belongs to
    known     parts of names or errors of tests that are known to fail, each with the reason
    """

    package: Path
    tests: str
    pattern: str
    left_out: dict[str, str]
    group: Callable[[str], str]
    known: dict[str, str] = field(default_factory=dict)

    def files(self, only: Sequence[str]) -> list[str]:
        """The files of tests, relative to the package's folder."""
        found = [str(p.relative_to(self.package)) for p in sorted((self.package / self.tests).rglob(self.pattern))]
        found = [each for each in found if not any(part in each for part in self.left_out)]
        return [each for each in found if not only or any(part in each for part in only)]


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that all suites have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--failures-of", type=Path, metavar="FILE", help="only tests that failed in an --output")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="files whose path contains one of these")
    parser.add_argument("-k", dest="select", help="tests whose names match, as for pytest")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for a test (default: 120)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write what became of each test, as JSON")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="compare with what --output wrote before")
    parser.add_argument(
        "--tensorflow", metavar="PYTHON", help="run on TensorFlow itself, with the interpreter that has it"
    )
    return parser


def run(suite: Suite, options: Any, environment: dict[str, str]) -> Results:
    """What became of each test."""
    if options.failures_of is not None:
        kept = json.loads(options.failures_of.read_text(encoding="utf-8"))
        files = [name for name, result in kept.items() if result["outcome"] == "failed"]
    else:
        files = suite.files(options.only)
    batches = _batches(suite, files, 12)
    began = time.monotonic()
    results: Results = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {
            pool.submit(_run_batch, suite, batch, options, environment, Path(folder, f"{number}.jsonl")): batch
            for number, batch in enumerate(batches)
        }
        with progress("tests", "batches", len(batches)) as bar:
            for done, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                results.update(future.result())
                bar.advance()
                if not is_possible():
                    took = time.monotonic() - began
                    print(f"{done} of {len(batches)} batches, {len(results)} tests, {took:.0f} s", file=sys.stderr)
    return results


def _batches(suite: Suite, files: Iterable[str], size: int) -> list[list[str]]:
    groups = defaultdict(list)
    for file in files:
        groups[suite.group(file)].append(file)
    found = [each[i : i + size] for each in groups.values() for i in range(0, len(each), size)]
    return sorted(found, key=len, reverse=True)


def _run_batch(suite: Suite, files: list[str], options: Any, environment: dict[str, str], report: Path) -> Results:
    on_tensorflow = options.tensorflow is not None
    # The plugin isn't reached through our package `tests`: a library's tests may be a package of that name.
    path = [str(suite.package), str(ROOT / "tests" / "foreign")]
    if not on_tensorflow:
        path += [str(ROOT), os.environ.get("PYTHONPATH", "")]
    variables = {
        **os.environ,
        **environment,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "AUTOGRAPH_REPORT": str(report),
        "AUTOGRAPH_TEST_TIMEOUT": str(options.timeout),
        "AUTOGRAPH_ON_TENSORFLOW": "1" if on_tensorflow else "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    command = [options.tensorflow or sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no"]
    command += ["--continue-on-collection-errors"]  # a file that can't be imported doesn't stop the others
    command += ["-p", "plugin", "--import-mode=prepend"]
    command += ["--rootdir", str(suite.package), "-c", os.devnull, "-W", "ignore"]
    command += ["-k", options.select] if options.select else []
    try:
        done = subprocess.run(
            [*command, *files], cwd=suite.package, env=variables, capture_output=True, text=True, check=False,
            timeout=3600,
        )  # fmt: skip
        said = (done.stdout + done.stderr)[-2000:]
    except subprocess.TimeoutExpired:
        said = "an hour was not enough"
    return _read(report, files, said)


def _read(report: Path, files: list[str], said: str) -> Results:
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()] if report.exists() else []
    results: Results = {}
    for line in lines:
        if "test" in line:
            before = results.get(line["test"])
            if before is None or before["outcome"] != "failed":
                results[line["test"]] = line
    if not any("end" in line for line in lines):
        name = f"{files[0]} and what follows"
        results[name] = {"test": name, "outcome": "failed", "error": f"the process died: {said}", "seconds": 0.0}
    return results


def read_known(file: Path) -> dict[str, str]:
    """Parts of names or errors of tests that are known to fail, with the reasons: two spaces between them."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return dict(line.split("  ", 1) for line in lines)


def mark_known(suite: Suite, results: Results) -> None:
    """Gives failures that are known their own outcome, and the reason instead of the error."""
    for name, result in results.items():
        said = f"{name} {result['error']}"
        reason = next((reason for part, reason in suite.known.items() if part in said), None)
        if result["outcome"] == "failed" and reason is not None:
            result.update(outcome="known", error=reason)


def table(suite: Suite, results: Results, beside: Results | None) -> str:
    """A row for each group of files: how many tests passed, failed and were skipped, in percent of those that ran."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for name, result in results.items():
        row = rows[suite.group(name.partition("::")[0])]
        row[result["outcome"]] += 1
        row["seconds"] += result["seconds"]
        if beside is not None and beside.get(name, {}).get("outcome") == "passed":
            row["theirs"] += 1
            row["both"] += result["outcome"] == "passed"
    rows["all"] = sum(rows.values(), Counter())
    head = ["", "passed", "failed", "known", "skipped", "%", "seconds"]
    head += ["of those that TensorFlow passes", "%"] if beside is not None else []
    lines = [head, ["---", *["--:"] * (len(head) - 1)]]
    for name, row in sorted(rows.items(), key=lambda item: (item[0] == "all", item[0])):
        ran = row["passed"] + row["failed"] + row["known"]
        cells = [
            name,
            row["passed"],
            row["failed"],
            row["known"],
            row["skipped"],
            _percent(row["passed"], ran),
            f"{row['seconds']:.0f}",
        ]
        if beside is not None:
            cells += [f"{row['both']} / {row['theirs']}", _percent(row["both"], row["theirs"])]
        lines.append(list(map(str, cells)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def reasons(results: Results) -> str:
    """The failures by their errors (or reasons), the most frequent first, each with a test that has it."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, result in results.items():
        if result["outcome"] in ("failed", "known"):
            found[_reason(result["error"])].append(name)
    lines = [f"{len(names):5} {error}\n        {names[0]}" for error, names in found.items()]
    return "\n".join(sorted(lines, key=lambda line: -int(line[:5])))


def _reason(error: str) -> str:
    line = next((each.strip() for each in error.splitlines() if each.strip()), "no message")
    lines = [each.strip() for each in error.splitlines() if "\x1b[1m" in each]  # Keras says where it was first
    if lines:
        line = f"{line.partition(':')[0]}: {lines[0]}"
    line = re.sub(r"\x1b\[\d*m|0x[0-9a-fA-F]+", "", line)
    return re.sub(r"\d+", "N", line)[:180]


def finish(suite: Suite, options: Any, environment: dict[str, str]) -> int:
    """Runs the suite, prints its table and the reasons of failures; 0 if no test failed."""
    results = run(suite, options, environment)
    mark_known(suite, results)
    if options.output is not None:
        options.output.write_text(json.dumps(results, indent=1), encoding="utf-8")
    beside = json.loads(options.beside.read_text(encoding="utf-8")) if options.beside is not None else None
    print(table(suite, results, beside))
    print()
    print(reasons(results))
    return 1 if any(result["outcome"] == "failed" for result in results.values()) else 0

"""`python -m tests.array_api SUITE`: the public test suite of the Python array API standard on `ag.array_api`.

SUITE is a checkout of data-apis/array-api-tests with its submodule `array-api`; it needs hypothesis, ndindex and
pytest-json-report. Tests that are known to fail stand in `exceptions.txt`, each group with its reason. Prints how many
passed and failed; the exit code is 1 where a test failed that isn't listed. A listed one may pass where the examples
don't meet what it fails on.

Operators of tensors refuse different dtypes, as TensorFlow's do, and shapes aren't sequences, which the suite's ndindex
requires. So the run switches NumPy's behaviour on (`experimental_enable_numpy_behavior`); `--plain` leaves it off, to
see what that costs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXCEPTIONS = Path(__file__).with_name("exceptions.txt")
PLAIN = "import autograph as ag; xp = ag.array_api"
PROMOTING = "import autograph as ag; ag.experimental.numpy.experimental_enable_numpy_behavior(); xp = ag.array_api"


def listed() -> set[str]:
    """The names of the tests that are known to fail; a name without parameters stands for all of them."""
    lines = EXCEPTIONS.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def is_listed(name: str, known: set[str]) -> bool:
    return name in known or name.partition("[")[0] in known


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.array_api", description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=Path, help="a checkout of data-apis/array-api-tests")
    parser.add_argument("--max-examples", type=int, default=20, help="examples of each property (default: 20)")
    parser.add_argument("--plain", action="store_true", help="leave NumPy's behaviour off, as by default")
    parser.add_argument("-k", dest="select", help="only tests whose names match, as for pytest")
    options = parser.parse_args()
    if not (options.suite / "array_api_tests").is_dir():
        parser.error(f"{options.suite} holds no folder array_api_tests")
    setup = PLAIN if options.plain else PROMOTING
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "ARRAY_API_TESTS_MODULE": f"exec('{setup}')",
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", "array_api_tests"]
        command += [f"--max-examples={options.max_examples}", "--disable-deadline", "--derandomize"]
        command += ["--json-report", f"--json-report-file={report}"]
        subprocess.run(
            command + (["-k", options.select] if options.select else []),
            cwd=options.suite, env=environment, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if not report.exists():
            print("The suite wrote no report: are hypothesis, ndindex and pytest-json-report installed?")
            return 2
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
    known = listed()
    outcomes = Counter(test["outcome"] for test in tests)
    failed = sorted(test["nodeid"] for test in tests if test["outcome"] in ("failed", "error"))
    passed = {test["nodeid"] for test in tests if test["outcome"] == "passed"}
    surprises = [name for name in failed if not is_listed(name, known)]
    mended = sorted(name for name in known & passed)
    for name in surprises:
        print(f"not listed, but fails: {name}")
    for name in mended:
        print(f"listed, but passes: {name}")
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{counts}; of the failures {len(failed) - len(surprises)} are listed in {EXCEPTIONS.name}")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())

"""A pytest plugin: installs the facade before a library's tests are imported, and writes what became of each test.

AUTOGRAPH_REPORT names the file, a line of JSON for each test; AUTOGRAPH_ON_TENSORFLOW=1 leaves TensorFlow itself in
its place, for comparison; AUTOGRAPH_TEST_TIMEOUT is the number of seconds that a test may take.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import time
from typing import Any

import pytest

REPORT = os.environ["AUTOGRAPH_REPORT"]
SECONDS = int(os.environ.get("AUTOGRAPH_TEST_TIMEOUT", "120"))

if os.environ.get("AUTOGRAPH_ON_TENSORFLOW") != "1":
    import autograph

    autograph.compat.install()


def skip_if_backend(given_backend: str, reason: str) -> Any:
    """A mark that Keras' tests import from the checkout's `conftest`, which the installed package doesn't have."""
    return pytest.mark.skipif(given_backend == "tensorflow", reason=reason)


if importlib.util.find_spec("conftest") is None:
    sys.modules["conftest"] = sys.modules[__name__]


class TookTooLong(BaseException):
    """A test has used up its time."""


def pytest_configure(config: Any) -> None:
    for marker in ("requires_trainable_backend", "multi_device", "large"):
        config.addinivalue_line("markers", f"{marker}: of the library's own suite")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        if "multi_device" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="Requires multiple devices"))


def pytest_collection_finish() -> None:
    flags = sys.modules.get("absl.flags")
    if flags is not None:  # which a test program would parse before it starts
        flags.FLAGS(["tests"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Any:
    def stop(number: int, frame: Any) -> None:
        raise TookTooLong(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        error = ""
        if call.excinfo is not None and report.outcome == "failed":
            error = f"{call.excinfo.type.__name__}: {call.excinfo.value}"
        with open(REPORT, "a", encoding="utf-8") as file:
            line = {"test": item.nodeid, "outcome": report.outcome, "error": error[:2000], "seconds": call.duration}
            file.write(json.dumps(line) + "\n")
    return report


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        with open(REPORT, "a", encoding="utf-8") as file:
            error = str(report.longrepr).strip().splitlines()[-1]
            line = {"test": report.nodeid, "outcome": "failed", "error": f"import: {error}", "seconds": 0.0}
            file.write(json.dumps(line) + "\n")


def pytest_sessionfinish() -> None:
    with open(REPORT, "a", encoding="utf-8") as file:
        file.write(json.dumps({"end": time.time()}) + "\n")

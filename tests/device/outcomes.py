"""A plugin of pytest (`-p tests.device.outcomes`) that writes the outcome of each test, as soon as it is known, to the
file that AUTOGRAPH_OUTCOMES names, and leaves out tests that are in it: a run that a crash has ended goes on. With
AUTOGRAPH_PART=1/4 it runs every fourth test, from the second on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from runtime.gpu import cuda_driver

LOST = 70  # the exit code of a process whose GPU refuses further work


def known(path: Path) -> list[dict[str, Any]]:
    """What a file of outcomes has, one for each test; a test that was begun and never ended has the outcome "begun"."""
    if not path.exists():
        return []
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        each = json.loads(line)
        if each["outcome"] == "begun" or found[each["test"]]["outcome"] in ("begun", "passed"):
            found[each["test"]] = each
    return list(found.values())


def _write(**outcome: Any) -> None:
    with open(os.environ["AUTOGRAPH_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps(outcome) + "\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    done = {each["test"] for each in known(Path(os.environ["AUTOGRAPH_OUTCOMES"]))}
    part, parts = map(int, os.environ.get("AUTOGRAPH_PART", "0/1").split("/"))
    chosen = [item for item in items[part::parts] if item.nodeid not in done]
    left = {id(item) for item in chosen}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in left])
    items[:] = chosen


def pytest_runtest_logstart(nodeid: str) -> None:
    _write(test=nodeid, outcome="begun")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        text = report.longreprtext[-4000:] if report.failed else ""
        _write(test=report.nodeid, outcome=report.outcome, seconds=round(report.duration, 3), text=text)


def pytest_runtest_teardown() -> None:
    driver = cuda_driver.driver()
    if driver is not None and driver.lost is not None:
        pytest.exit(driver.lost, LOST)

"""The subset of the tests that `python -m tests --quick` runs: a plugin of pytest.

It keeps something of every file: of each test one set of parameters, and of each file at most `MOST` tests, evenly
spread, none of them in `SLOW`. The choice depends on names alone: it is the same on every machine and in every run.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import pytest

MOST = 20
# Tests that take most of the time of others.
SLOW = {
    "tests/autodiff/test_random_programs.py": ["test_gradients_of_random_programs"],
    "tests/convert/test_cost.py": ["test_a_soak_stays_flat"],
    "tests/engine/test_kernel_cache.py": ["test_processes_that_write_the_same_kernel",
    "test_kill_9_while_a_file_is_written"], "tests/engine/test_load.py": ["test_calls_leave_nothing"],
    "tests/engine/test_processes.py": ["test_a_signal_while_a_kernel_is_compiled"],
    "tests/examples/test_implicit_newton.py": ["test_gradients_agree"],
    "tests/examples/test_kalman.py": ["test_derivatives_are_those_of_central_differences"],
    "tests/examples/test_path_gradient.py": [
        "test_average_is_nearer_than_the_mean", "test_gradient_is_that_of_central_differences",
        "test_search_finds_the_nearest_and_gives_up_early",
    ],
    "tests/graph/test_interpreter.py": ["test_a_long_chain_needs_the_memory_of_few_arrays"],
    "tests/ops/test_decompositions.py": ["test_lu"],
}  # fmt: skip
_SLOW = {f"{file}::{test}" for file, tests in SLOW.items() for test in tests}


def chosen(names: Sequence[str]) -> set[str]:
    """Those of the tests (`file::test[parameters]`) that are in the subset."""
    of_tests: dict[str, list[str]] = {}
    for name in names:
        of_tests.setdefault(name.partition("[")[0], []).append(name)
    of_files: dict[str, list[str]] = {}
    for test in of_tests:
        if test in _SLOW:
            continue
        of_files.setdefault(test.partition("::")[0], []).append(test)
    kept = set()
    for tests in of_files.values():
        count = min(len(tests), MOST)
        for number in range(count):
            cases = of_tests[tests[number * len(tests) // count]]
            kept.add(min(cases, key=lambda name: (zlib.crc32(name.encode()), name)))
    return kept


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = chosen([item.nodeid for item in items])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    config.stash[_COUNTS] = counts = (len(kept), len(items))
    if hasattr(config, "workeroutput"):  # a process of pytest-xdist, which another one reports for
        config.workeroutput["quick"] = counts
    items[:] = [item for item in items if item.nodeid in kept]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    counts = getattr(node, "workeroutput", {}).get("quick")
    if counts is not None:
        node.config.stash[_COUNTS] = counts


_COUNTS = pytest.StashKey[tuple[int, int]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    kept, all_tests = config.stash.get(_COUNTS, (0, 0))
    terminalreporter.write_line(
        f"quick: {kept} of {all_tests} tests, some of every file. Left out: {len(_SLOW)} slow tests, all sets of "
        f"parameters but one of the others, and all but {MOST} tests of a file. `python -m tests` runs everything."
    )

"""Runs tests as on an interpreter that this project has never seen: a plugin of pytest.

    pytest -p tests.quick -p tests.unseen --unseen opcodes

What is pretended, `--unseen`:

opcodes      no instruction of the bytecode has a name that is known
counts       counts of references are one higher than usual
references   counts of references don't see what variables and expressions hold
iterators    the garbage collector doesn't know what iterators hold
names        code objects can't be given other names

A test may then be refused what it computes elsewhere, if the error gives the interpreter as the reason: it counts as an
expected failure. A wrong value is a failure like any.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Iterator
from types import CodeType, SimpleNamespace
from typing import Any

import pytest

# The trials that fail then; processes that tests start are told by name.
FAILING = {
    "opcodes": "bytecode", "counts": "", "references": "references", "iterators": "iterators", "names": "names"
}  # fmt: skip
# Tests of what can't be had then: for `opcodes` the cost of the search, its precision, and what is read by names; for
# `names` our own way to make classes.
LEFT_OUT = {
    "opcodes": [
        "tests/operators/test_exchanged_and_changed.py::test_what_may_be_one_is_looked_up_in_proportion_to_the_program",
        "tests/operators/test_far_objects.py::test_looking_at_many_objects_is_linear",
        "tests/operators/test_evaluation_stack.py::test_the_depth_of_the_stack_is_the_compilers",
        "tests/operators/test_evaluation_stack.py::test_what_needs_no_care_is_staged",
    ],
    "names": ["tests/test_dataclass.py::test_wrong_classes_are_refused"],
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--unseen", choices=FAILING, required=True, help="what of the interpreter is unknown (tests/unseen.py)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    pretended = config.getoption("--unseen")
    assert "runtime" not in sys.modules, "the project looks at its interpreter when it is imported"
    if pretended in ("counts", "references"):
        _change_counts(pretended)
    elif pretended in ("iterators", "names"):
        os.environ["AUTOGRAPH_UNKNOWN_INTERPRETER"] = pretended
    from runtime import bytecode, interpreter

    if pretended == "opcodes":
        bytecode.dis = _without_names()  # type: ignore[assignment]
    failing = {"references": not interpreter.ALONE, "bytecode": not interpreter.reads_bytecode()}
    failing |= {"iterators": not interpreter.SEES_ITERATORS, "names": not interpreter.RENAMES}
    assert [name for name, fails in failing.items() if fails] == [FAILING[pretended]] * bool(FAILING[pretended]), (
        failing
    )
    os.environ["AUTOGRAPH_UNKNOWN_INTERPRETER"] = FAILING[pretended]


def _change_counts(pretended: str) -> None:
    count = sys.getrefcount

    def higher(value: Any) -> int:
        return count(value) - 1  # the caller's and this function's, without that of the call

    def capped(value: Any) -> int:
        return min(count(value), 3)

    sys.getrefcount = higher if pretended == "counts" else capped


def _without_names() -> SimpleNamespace:
    named = dis.get_instructions

    def get_instructions(code: CodeType) -> Iterator[dis.Instruction]:
        return (each._replace(opname=f"UNSEEN_{each.opcode}") for each in named(code))

    names = [f"UNSEEN_{number}" for number in range(len(dis.opname))]
    return SimpleNamespace(**{**vars(dis), "get_instructions": get_instructions, "opname": names})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    from runtime.interpreter import doubt

    if report.failed and call.excinfo is not None and doubt() and doubt() in str(call.excinfo.value):
        report.outcome, report.wasxfail = "skipped", "refused, since the interpreter is unknown"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = LEFT_OUT.get(config.getoption("--unseen"), [])
    left = [each for each in items if each.nodeid.partition("[")[0] in names]
    config.hook.pytest_deselected(items=left)
    items[:] = [each for each in items if each not in left]

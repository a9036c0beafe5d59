"""The rows of functions that kernels call: there is one for each, and what it says is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from runtime.codegen.backends import llvm_backend
from runtime.codegen.device import library as device_library
from runtime.codegen.device.partial_results import WORDS
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.effects import Effects, of_text
from runtime.kernel_ir.functions import ROWS, Cost, cost_of, row_of
from runtime.llvm import calls, device_calls

pytestmark = pytest.mark.skipif(not llvm_backend.available(), reason="runtime.llvm doesn't support this machine")

RUNTIME = Path(__file__).resolve().parent.parent.parent / "runtime"
LIBRARIES: dict[str, Any] = {
    "processor": llvm_backend._library().functions,
    "gpu": device_library.library().functions,
}
# The functions in plain Python that kernels call; those that GPUs have of their own.
TEXTS = [
    ("processor", name)
    for name in LIBRARIES["processor"]
    if f"lib.{name}" in ROWS and ("lib", name) not in calls.BUILTINS
]
TEXTS += [
    ("gpu", name)
    for name, text in LIBRARIES["gpu"]._texts.items()
    if f"lib.{name}" in ROWS and text != LIBRARIES["processor"]._texts.get(name)
]


def text_of(library: str, name: str) -> ir.Function:
    function: ir.Function = LIBRARIES[library][name]
    return function


def called(function: ir.Function) -> set[str]:
    parts = (each for item in ir.walk(function.body) for each in ir.expressions(item))
    return {each.function for each in parts if isinstance(each, ir.Call)}


def test_every_function_that_lowering_names_has_a_row() -> None:
    """The verifier finds those whose names are put together (`verify.py`)."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in RUNTIME.rglob("*.py"))
    named = set(re.findall(r'"(lib\.\w+)"', text))
    assert len(named) > 40
    assert named <= ROWS.keys()
    for table in (calls.BUILTINS, device_calls.BUILTINS):
        assert {f"{module}.{name}".lstrip(".") for module, name in table} <= ROWS.keys()


@pytest.mark.parametrize(("library", "name"), TEXTS)
def test_effects_are_those_of_the_text(library: str, name: str) -> None:
    """What the text does is in the row. On the processor, the row says no more than that."""
    row = ROWS[f"lib.{name}"]
    own = of_text(text_of(library, name), Effects(LIBRARIES[library]).of)
    stated = (set(row.effect.reads), set(row.effect.writes), set(row.effect.keeps))
    found = (set(own.reads), set(own.writes), set(own.keeps))
    assert all(part <= whole for part, whole in zip(found, stated))
    assert own.allocates <= row.effect.allocates
    if library == "processor":
        assert (found, own.allocates) == (stated, row.effect.allocates)


def test_the_effects_of_a_text() -> None:
    assert of_text(text_of("processor", "resized"), Effects(LIBRARIES["processor"]).of) == ((0,), (), (0,), True)
    assert Effects({}).of("lib.unknown").changes_memory


def loops(library: str, name: str) -> bool:
    """Whether a function's time depends on its arguments."""
    function = text_of(library, name)
    for item in ir.walk(function.body):
        if isinstance(item, ir.While) or (isinstance(item, ir.For) and not isinstance(item.stop, ir.Const)):
            return True
    inner = (each.removeprefix("lib.") for each in called(function))
    return any(
        cost_of(each) is Cost.LOOP if row_of(each) else loops(library, each)
        for each in inner
        if row_of(each) or each in LIBRARIES[library]
    )


@pytest.mark.parametrize(("library", "name"), [each for each in TEXTS if each[0] == "processor"])
def test_costs_are_those_of_the_text(library: str, name: str) -> None:
    row, function = ROWS[f"lib.{name}"], text_of(library, name)
    assert (row.cost is Cost.LOOP) == loops(library, name)
    if row.cost <= Cost.SHORT:
        assert all(cost_of(each) <= Cost.SHORT for each in called(function))
        assert not any(isinstance(item, (ir.For, ir.While)) for item in ir.walk(function.body))


@pytest.mark.parametrize(("library", "name"), TEXTS)
def test_pure_functions_call_only_pure_ones(library: str, name: str) -> None:
    if library == "processor" and ROWS[f"lib.{name}"].is_pure:
        rows = [row_of(each) for each in called(text_of(library, name))]
        assert all(row.is_pure for row in rows if row is not None)


def test_rows_of_machine_operations() -> None:
    """Those that are a few instructions are written in place by every backend."""
    for table in (calls.BUILTINS, device_calls.BUILTINS):
        for module, name in table:
            row = ROWS[f"{module}.{name}".lstrip(".")]
            assert row.cost is Cost.INSTRUCTION or row.effect.writes or module == "math", name
    assert {name for name, row in ROWS.items() if row.joins} == {name for name in WORDS if name.startswith("lib.")}
    views = {name: row for name, row in ROWS.items() if row.view is not None}
    assert all(row.view in row.effect.keeps and not row.effect.allocates for row in views.values())
    assert views.keys() >= {"lib.flat", "lib.shaped", "gpu.view"}

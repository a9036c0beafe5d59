"""The text of small kernels, and what each pass changes in them, as people read it. `--update-golden` rewrites
tests/golden/kernels, tests/golden/kernel_passes and tests/golden/device_passes."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from runtime import system
from runtime.codegen.device import pipeline
from runtime.codegen.lower.state import EMITTERS
from runtime.codegen.passes.pipeline import PASSES
from runtime.engine import stages
from runtime.kernel_ir import ir
from tests.codegen.golden_cases import (
    DEVICE_PASSES,
    KERNEL_PASSES,
    KERNELS,
    UNCHANGED,
    cases_in,
    concrete,
    kernel_text,
    pass_of,
    pass_text,
)
from tests.convert import golden

CASES = cases_in(KERNELS)
PASS_CASES = [*cases_in(KERNEL_PASSES), *cases_in(DEVICE_PASSES)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel_texts(case: golden.Case, request: Any) -> None:
    golden.compare(case, kernel_text(case.source), request)


@pytest.mark.parametrize("case", PASS_CASES, ids=lambda case: f"{case.path.stem}-{case.name}")
def test_kernel_passes(case: golden.Case, request: Any) -> None:
    if not system.has_posix_threads() and pass_of(case) == "parallelisation":
        pytest.skip("kernels use POSIX threads")
    golden.compare(case, pass_text(pass_of(case), case.source), request)


def test_names_are_unique() -> None:
    assert not [name for name, count in Counter(case.name for case in CASES).items() if count > 1]
    named = Counter((case.path.stem, case.name) for case in PASS_CASES)
    assert not [name for name, count in named.items() if count > 1]
    assert len(CASES) >= 60


def test_every_pass_has_cases() -> None:
    """Two that it changes at least, and one that it must leave alone. `device_kernels` has those of the SPMD form."""
    cases = [*cases_in(KERNEL_PASSES), *cases_in(DEVICE_PASSES)]  # `--update-golden` may have written them just now
    device_passes = [name for name, _ in pipeline.PASSES if name != "SPMD form"]
    for name in [*(name for name, _ in PASSES), *device_passes]:
        own = [case for case in cases if pass_of(case) == name]
        changed = [case for case in own if case.expected.strip() != UNCHANGED]
        folder = "device_passes" if name in device_passes else "kernel_passes"
        file = f"tests/golden/{folder}/{name.replace(' ', '_').replace('-', '_')}.test"
        assert len(changed) >= 2, (
            f"{file} has {len(changed)} cases that '{name}' changes, and needs two: write them with an empty [out] and "
            "run `pytest --update-golden tests/codegen/test_golden.py`"
        )
        assert len(own) > len(changed), f"{file} has no case that '{name}' must leave alone"


def test_the_text_does_not_depend_on_sizes() -> None:
    """But for the side of the bounds in the cost model on which they are."""
    source = next(case for case in CASES if case.name == "rnn").source
    larger = source
    for size, other in {"8": "20", "4": "11", "5": "12"}.items():
        larger = re.sub(rf"\b{size}\b", other, larger)
    assert "xs: float32[None, 20, 11], h: float32[20, 12]" in larger
    assert kernel_text(source) == kernel_text(larger)


def test_every_file_of_lowerings_has_cases(monkeypatch: Any) -> None:
    """Each is used by two of them at least."""
    files = {name: emit.__module__ for name, emit in EMITTERS.items()}
    users: dict[str, set[str]] = {file: set() for file in files.values()}

    def noted(name: str, emit: Any) -> Any:
        def run(*arguments: Any) -> Any:
            users[files[name]].add(case.name)
            return emit(*arguments)

        return run

    for name, emit in list(EMITTERS.items()):
        monkeypatch.setitem(EMITTERS, name, noted(name, emit))
    for case in CASES:
        kernel_text(case.source)
    few = [file for file, names in users.items() if len(names) < 2]
    assert not few, f"fewer than two cases of tests/golden/kernels use {few}: add small programs, with an empty [out]"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_take_no_constants_that_they_do_not_read(case: golden.Case) -> None:
    function, gradient = concrete(case.source)
    graph = stages.chosen(function.function, gradient).executable.graph
    for part in stages.native_parts(graph):
        assert part.source is not None
        kernel = part.source.functions[-1]
        constants = kernel.parameters[len(kernel.parameters) - len(part.source.constants) :]
        assert set(constants) <= ir.mentioned(kernel.body)

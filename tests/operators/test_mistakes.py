"""What is said about mistakes that newcomers make: the class, the place, the cause and what to write instead."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import autograph as ag


def test_a_leaked_argument_is_named() -> None:
    kept: list[Any] = []

    @ag.function
    def remember(x: Any) -> Any:
        kept.append(x)
        return x

    remember(ag.constant(1.0))
    with pytest.raises(ag.errors.InaccessibleTensorError) as caught:
        kept[-1] + 1
    message = str(caught.value)
    assert "a tensor 'x' belongs to the function 'remember' and is used outside of it" in message
    assert "kept[-1] + 1" in message and "cause: it was stored in an outer object" in message
    assert "fix: return it from the function" in message


def test_a_leaked_tensor_is_named_by_the_line_that_made_it() -> None:
    kept: list[Any] = []

    @ag.function
    def remember(x: Any) -> Any:
        kept.append(x * 2)
        return x

    @ag.function
    def use(x: Any) -> Any:
        return x + kept[0]

    remember(ag.constant(1.0))
    line = remember.python_function.__code__.co_firstlineno + 2
    with pytest.raises(ag.errors.InaccessibleTensorError) as caught:
        use(ag.constant(1.0))
    assert f"made at {__file__}:{line}, in remember, belongs to the function 'remember'" in str(caught.value)
    assert "is used in 'use', which can't see it" in str(caught.value)


@pytest.mark.parametrize("jit_compile", [None, True])
def test_an_index_out_of_bounds_is_an_index_error_too(jit_compile: bool | None) -> None:
    @ag.function(jit_compile=jit_compile)
    def pick(x: Any, i: Any) -> Any:
        return x[i]

    for kind in (IndexError, ag.errors.InvalidArgumentError):
        with pytest.raises(kind, match="slice index 5 of dimension 0 out of bounds"):
            pick(ag.constant([1.0, 2.0]), ag.constant(5))
        with pytest.raises(kind, match="slice index 5 of dimension 0 out of bounds"):
            ag.constant([1.0, 2.0])[5]


@pytest.mark.parametrize("name", ["append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "fill"])
def test_methods_of_lists_say_what_to_write(name: str) -> None:
    x = ag.constant([1.0, 2.0])
    with pytest.raises(AttributeError, match=f"'EagerTensor' object has no attribute '{name}'") as caught:
        getattr(x, name)
    assert caught.value.name == name
    assert "getattr(x, name)" in str(caught.value) and "\n  fix: " in str(caught.value)
    assert not hasattr(x, name) and name not in dir(x)


def test_the_fixes_of_append_work() -> None:
    with pytest.raises(AttributeError) as caught:
        ag.constant([1.0]).append(2.0)  # type: ignore[attr-defined]
    assert "ag.stack(values)" in str(caught.value) and "x = ag.concat([x, [v]], 0)" in str(caught.value)
    x, v = ag.constant([1.0]), 2.0
    assert ag.concat([x, [v]], 0).numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "value, said",
    [
        ([[1.0, 2.0], [3.0]], "Item 0 is of length 2 and item 1 is of length 1."),
        ([[1, 2], 3], "Item 0 is of length 2 and item 1 is no list."),
        ([[[1], [2]], [[3], [4, 5]]], "Tensor. Pad its rows"),
    ],
)
def test_lists_that_are_not_rectangular(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match="Can't convert non-rectangular Python sequence to Tensor") as caught:
        ag.constant(value)
    assert said in str(caught.value)
    assert "ag.ragged.constant(x)" in str(caught.value)


def test_a_function_without_a_base_case_ends() -> None:
    """The errors' tracebacks are cleaned once, not in each of the calls that they leave."""
    from runtime import tracebacks

    cleaned = []
    original = tracebacks._clean_all

    @ag.function
    def endless(n: Any) -> Any:
        return endless(n + 1) + 1

    tracebacks._clean_all = lambda error: (cleaned.append(error), original(error))[1]
    try:
        with pytest.raises(RecursionError):
            endless(ag.constant(0))
    finally:
        tracebacks._clean_all = original
    assert 0 < len(cleaned) < 10, sys.getrecursionlimit()


def test_a_loop_that_python_never_ends_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from autograph.operators import loops

    monkeypatch.setattr(loops, "_MOST_OPERATIONS", 2000)

    def endless(x: Any) -> Any:
        while True:
            x = x * 2
        return x

    def items(x: Any) -> Any:
        for _ in iter(int, 1):
            x = x * 2
        return x

    for program, line in (endless, "while True"), (items, "for _ in iter(int, 1)"):
        with pytest.raises(ag.errors.StagingError, match=r"a loop on Python values was unrolled \d+ times") as found:
            ag.function(program)(ag.constant(1.0))
        assert "fix: loop over ag.range(n)" in str(found.value) and line in str(found.value)

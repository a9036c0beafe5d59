"""`autograph.testing`: checks for the test suites of programs that use this project.

`autograph.testing.plugin` is a plugin of pytest, which has them as fixtures.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from autograph.function.polymorphic import Function, functions_run_eagerly, python_function_of, run_functions_eagerly
from autograph.function.retracing import watched
from autograph.naming import result_names
from runtime import nest
from runtime.autodiff.checking import check_gradients
from runtime.autodiff.tape import GradientTape
from runtime.dataclass import dataclass
from runtime.ops.convert import convert_to_tensor
from runtime.spec import TensorSpec
from runtime.tensor import Tensor

__all__ = ["check_gradients", "check_modes", "no_retrace"]

_LEAF = TensorSpec(None, None)
_MODES: dict[str, bool | None] = {"eager": None, "traced": False, "compiled": True}
# Relative, by the bytes of a real number: sums are taken in another order by kernels.
_TOLERANCES = {1: 0.1, 2: 1e-2, 4: 1e-5, 8: 1e-12}


@contextlib.contextmanager
def no_retrace(*functions: Function[..., Any]) -> Iterator[None]:
    """A block in which no function that has a trace is traced again.

    functions: those that count; by default all. First traces are allowed: call a function with all kinds of arguments
    before the block, if it is to make none.

    Raises AssertionError at the end, with the place of each call that caused a trace and what was new in it.

    >>> f = function(lambda x: x + 1)
    >>> f(zeros(3))
    >>> with no_retrace():
    ...     f(zeros(4))
    Traceback (most recent call last):
    AssertionError: 1 function call in a no_retrace block has caused another trace: ...
    """
    with watched() as found:
        yield
    counted = [f.python_function for f in functions]  # calls that machine code hands on come by another object
    wrong = [each for each in found if not functions or each.function.python_function in counted]
    if wrong:
        lines = "\n".join(f"  {each.where}: '{each.name}' was traced again, since {each.reason}" for each in wrong)
        calls = "1 function call" if len(wrong) == 1 else f"{len(wrong)} function calls"
        raise AssertionError(
            f"{calls} in a no_retrace block caused another trace:\n{lines}\n"
            "fix: tensors in place of Python numbers, open dimensions (input_signature, reduce_retracing)"
        )


def check_modes(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    gradients: bool = True,
    rtol: float | None = None,
    atol: float = 0.0,
) -> Any:
    """Calls `f` eagerly, traced, and compiled, and compares what it gives. Returns the eager result.

    f: a function or an `ag.function`. args, kwargs: its arguments; arrays become tensors.
    gradients: also compare the gradients of the floating-point results by the floating-point tensors among the
    arguments.
    rtol, atol: how much numbers may differ; rtol is 1e-12 for float64 and 1e-5 for float32 by default. Integers and
    bools must be equal.

    Raises AssertionError that shows what differs in which mode; the error of the eager call if all modes raise one of
    its type.
    """
    python = python_function_of(f)
    name = getattr(python, "__name__", type(python).__name__)
    given = nest.map_structure(_as_argument, (list(args), dict(kwargs or {})))
    outcomes = {mode: _outcome(python, jit_compile, given, gradients) for mode, jit_compile in _MODES.items()}
    raised = {mode: outcome.error for mode, outcome in outcomes.items()}
    first = raised["eager"]
    if any(type(error) is not type(first) for error in raised.values()):
        lines = "\n".join(f"  {mode}: {_shown(error)}" for mode, error in raised.items())
        raise AssertionError(f"the modes of {name} differ:\n{lines}")
    if first is not None:
        raise first
    differences = [line for other in ("traced", "compiled") for line in _differences(outcomes, other, rtol, atol)]
    if differences:
        raise AssertionError(f"the modes of {name} differ:\n" + "\n".join(differences))
    return outcomes["eager"].result


@dataclass
class _Outcome:
    """What a call gave. values: the numbers by name, None for what isn't there."""

    result: Any
    values: dict[str, Any]
    error: Exception | None


def _as_argument(value: Any) -> Any:
    return convert_to_tensor(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _shown(error: Exception | None) -> str:
    return "no error" if error is None else f"{type(error).__name__}: {error}".partition("\n")[0]


def _outcome(python: Callable[..., Any], jit_compile: bool | None, given: tuple, gradients: bool) -> _Outcome:
    args, kwargs = given
    sources = [each for each in nest.flatten(given) if isinstance(each, Tensor) and each.dtype.is_differentiable]
    sources = sources if gradients else []
    called = python if jit_compile is None else Function(python, jit_compile=jit_compile)
    before = functions_run_eagerly()
    run_functions_eagerly(jit_compile is None)
    try:
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            result = called(*args, **kwargs)
            tensors = [convert_to_tensor(each) for each in nest.flatten(result) if each is not None]
        names = result_names(nest.map_structure(lambda each: None if each is None else _LEAF, result))
        values = dict(zip(names, tensors, strict=True))
        targets = [each for each in tensors if each.dtype.is_differentiable]
        if targets and sources:
            names = [f"gradient by tensor {number} of the arguments" for number in range(len(sources))]
            values.update(zip(names, tape.gradient(targets, sources)))
    except Exception as error:
        return _Outcome(None, {}, error)
    finally:
        run_functions_eagerly(before)
    numbers = {name: None if each is None else convert_to_tensor(each).numpy() for name, each in values.items()}
    return _Outcome(result, numbers, None)


def _differences(outcomes: Mapping[str, _Outcome], mode: str, rtol: float | None, atol: float) -> Iterator[str]:
    """A line for each value in which the mode differs from the eager call."""
    eager, other = outcomes["eager"].values, outcomes[mode].values
    if list(eager) != list(other):
        yield f"  eager gives {', '.join(eager)}; {mode} gives {', '.join(other)}"
        return
    for name, expected in eager.items():
        line = _difference(expected, other[name], rtol, atol)
        if line is not None:
            yield f"  {name}: {line.format(mode=mode)}"


def _difference(expected: Any, found: Any, rtol: float | None, atol: float) -> str | None:
    if expected is None or found is None:  # a gradient by what a result doesn't depend on
        return (
            None if expected is found else _pair(*("None" if each is None else "a value" for each in (expected, found)))
        )
    expected, found = np.asarray(expected), np.asarray(found)
    if (expected.dtype, expected.shape) != (found.dtype, found.shape):
        return _pair(f"{expected.dtype} of shape {expected.shape}", f"{found.dtype} of shape {found.shape}")
    if expected.dtype.kind in "biuSUO":
        differs = expected != found
    else:
        size = expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1)
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        tolerance = _TOLERANCES[size] if rtol is None else rtol
        differs = ~np.isclose(found.astype(wide), expected.astype(wide), rtol=tolerance, atol=atol, equal_nan=True)
    if not differs.any():
        return None
    at = tuple(int(i) for i in np.argwhere(differs)[0])
    place = f"at {list(at)}, " if at else ""
    return f"{place}{_pair(expected[at], found[at])} ({int(differs.sum())} of {differs.size} numbers differ)"


def _pair(expected: Any, found: Any) -> str:
    return f"eager {expected}, {{mode}} {found}"

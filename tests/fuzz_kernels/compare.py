"""Runs a program in three ways and says how they differ.

Integers and truth values must be equal to the bit. Floats may differ by what reassociated sums and functions of 4 units
in the last place explain: 1e-5 (float32) or 1e-12 (float64), relative to the larger of 1 and the largest element, or 50
times what the eager result changes when the inputs change by 4 units in the last place: a program that amplifies
rounding errors shows nothing.
"""

from __future__ import annotations

import _thread
import contextlib
import itertools
import linecache
import signal
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import autograph as ag
from runtime.dtypes import finfo
from tests.fuzz_kernels.program import Program

_serial = itertools.count()
_PATIENCE = 60.0  # seconds for a smaller program
# Where compiled programs run: None, or the name of a GPU.
DEVICE: list[str | None] = [None]


@dataclass
class Outcome:
    """What a run gave: arrays or an error, and the variables afterwards."""

    values: list[np.ndarray] | None
    error: Exception | None
    state: list[np.ndarray]


class Runs:
    """A program's module and its functions, which are made once for all values of n."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.module: Any = types.ModuleType(f"fuzzed_{next(_serial)}")
        self.functions: dict[str, Any] = {}

    def __enter__(self) -> Runs:
        self.filename = f"<{self.module.__name__}>"
        text = self.program.source()
        linecache.cache[self.filename] = (len(text), None, text.splitlines(True), self.filename)
        sys.modules[self.module.__name__] = self.module
        exec(compile(text, self.filename, "exec"), self.module.__dict__)
        return self

    def __exit__(self, *error: object) -> None:
        del linecache.cache[self.filename], sys.modules[self.module.__name__]

    def run(self, mode: str, n: int | None = None) -> Outcome:
        """Once eager, `perturbed` (eager, with inputs and constants that are a little off), interpreted or compiled."""
        module, inputs = self.module, {}
        module.v.assign([1.0, -2.0, 0.5])
        module.w.assign(3)
        for name, text in self.program.inputs.items():
            inputs[name] = ag.constant(eval(text if n is None or name != "n" else f"np.int32({n})", {"np": np}))
        if mode == "perturbed":
            inputs = {name: _moved(x) for name, x in inputs.items()}
            module.v.assign(module.v * np.float32(1 + 4e-7))
            module.ag = _MovedConstants()
        elif mode != "eager" and mode not in self.functions:
            self.functions[mode] = self._staged(inputs, mode == "compiled")
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                with ag.device(DEVICE[0] if mode == "compiled" else None):
                    results = self.functions.get(mode, module.program)(*inputs.values())
                values, error = [np.array(x.numpy()) for x in results], None
        except Exception as caught:
            values, error = None, caught
        finally:
            module.ag = ag
        return Outcome(values, error, [module.v.numpy().copy(), module.w.numpy().copy()])

    def _staged(self, inputs: dict[str, Any], compiled: bool) -> Any:
        specs = None
        if self.program.dynamic:
            specs = [
                ag.TensorSpec([None] * x.shape.rank if name in self.program.dynamic else x.shape, x.dtype)
                for name, x in inputs.items()
            ]
        return ag.function(self.module.program, input_signature=specs, jit_compile=compiled)


def _moved(x: Any) -> Any:
    if not x.dtype.is_floating:
        return x
    eps = float(finfo(x.dtype).eps)
    return x * (1 + 4 * eps) + eps


class _MovedConstants:
    """The library, but for numbers that programs begin with: a loop may make much of an error in the last place without
    any input."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(ag, name)
        if name not in ("constant", "fill", "ones", "ones_like", "eye"):
            return found
        return lambda *arguments, **options: _moved(found(*arguments, **options))


def difference(program: Program) -> tuple[str, str] | None:
    """(kind, description) of what differs between the ways to run a program, or None. Kind "invalid" means that the
    program can't be traced or is broken."""
    with Runs(program) as runs:
        for n in [None, *program.more]:
            found = _difference(runs, n)
            if found is not None:
                return found if n is None else (found[0], f"n = {n}: {found[1]}")
    return None


def _difference(runs: Runs, n: int | None) -> tuple[str, str] | None:
    eager, interpreted, compiled = (runs.run(mode, n) for mode in ("eager", "interpreted", "compiled"))
    if _is_invalid(interpreted.error) and type(interpreted.error) is type(compiled.error):
        return "invalid", repr(interpreted.error)
    off: list[Outcome] = []

    def perturbed() -> Outcome:
        if not off:
            off.append(runs.run("perturbed", n))
        return off[0]

    for name, one, other in (
        ("interpreted/compiled", interpreted, compiled),
        ("eager/interpreted", eager, interpreted),
    ):
        text = _differ(one, other, name, eager, perturbed)
        if text:
            return f"{name} {text[0]}", text[1]
    return None


def _is_invalid(error: Exception | None) -> bool:
    """Whether the error comes from tracing or from a program that shrinking broke, not from running it."""
    if error is None:
        return False
    if isinstance(
        error, (NameError, SyntaxError, ag.errors.AutographError if hasattr(ag.errors, "AutographError") else NameError)
    ):
        return True
    return not isinstance(error, ag.errors.OpError) and "on purpose" not in str(error)


def _wording(error: Exception | None) -> str:
    """The first line of a message."""
    return str(error).partition("\n")[0]


def _differ(one: Outcome, other: Outcome, name: str, eager: Outcome, perturbed: Any) -> tuple[str, str] | None:
    left, right = one.error, other.error
    eagerly = name.startswith("eager")
    if left is not None or right is not None:
        if eagerly and (left is not None or _is_invalid(right)):
            # What a trace leaves out because nothing uses it can't fail; what it can't stage is told when it is traced.
            return None
        if type(left) is not type(right):
            if (
                perturbed().error is None
                and eager.error is None
                or eager.error is not None
                and perturbed().error is not None
            ):
                return "error class", f"{left!r}\nagainst\n{right!r}"
            return None
        first, second = _wording(left), _wording(right)
        if first != second:
            return "error message", f"{first}\nagainst\n{second}"
    else:
        assert one.values is not None and other.values is not None
        if eagerly and len(one.values) != len(other.values):
            return "number of results", f"{len(one.values)} against {len(other.values)}"
        for index, (a, b) in enumerate(zip(one.values, other.values)):
            text = _unequal(a, b)
            if text and not _explained(a, b, perturbed().values, index):
                return "value", f"result {index}: {text}\n{_some(a)}\nagainst\n{_some(b)}"
    for index, (a, b) in enumerate(zip(one.state, other.state)):
        text = _unequal(a, b)
        if text and not _explained(a, b, perturbed().state, index):
            return "variable", f"variable {'vw'[index]}: {text}\n{a}\nagainst\n{b}"
    return None


_TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-12}


def _unequal(a: np.ndarray, b: np.ndarray) -> str | None:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape} against {b.dtype}{b.shape}"
    tolerance = _TOLERANCES.get(a.dtype.name)
    if tolerance is None:
        return None if np.array_equal(a, b) else f"{np.count_nonzero(a != b)} elements differ"
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)) or not np.array_equal(a[np.isinf(a)], b[np.isinf(a)]):
        return "NaN or infinity where there is none"
    fine = np.isfinite(a) & np.isfinite(b)
    if np.count_nonzero(np.isinf(a)) != np.count_nonzero(np.isinf(b)):
        return "infinity where there is none"
    error = np.abs(a[fine] - b[fine])
    scale = np.maximum(1.0, np.max(np.abs(a[fine]), initial=0.0))
    return None if np.all(error <= tolerance * scale) else f"off by {np.max(error):.3g}"


def _explained(a: np.ndarray, b: np.ndarray, moved: list[np.ndarray] | None, index: int) -> bool:
    """Whether rounding errors of the inputs have as much of an effect as what was found."""
    if moved is None:
        return True  # the perturbed program fails: a discrete decision hangs on rounding
    if index >= len(moved):
        return False
    c = moved[index]
    if c.dtype != a.dtype or c.shape != a.shape or a.shape != b.shape:
        return bool(c.shape != a.shape)
    if a.dtype.name not in _TOLERANCES:
        return not np.array_equal(a, c)
    with np.errstate(all="ignore"):
        effect = np.abs(a.astype(np.float64) - c.astype(np.float64))
        found = np.abs(a.astype(np.float64) - b.astype(np.float64))
        if not np.all(np.isfinite(effect) | np.isnan(a) & np.isnan(c) | (a == c)):
            return True
        return bool(np.nanmax(found, initial=0.0) <= 50 * np.nanmax(effect, initial=0.0))


def _some(array: np.ndarray) -> str:
    return np.array2string(array, threshold=40, max_line_width=110)


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the main thread when the time is over, in native loops too, as if by Ctrl-C."""
    over: list[bool] = []

    def stop() -> None:
        over.append(True)
        _thread.interrupt_main()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    # In the background of a shell the signal is ignored, and nothing would come of the interruption.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if over:
            raise TimeoutError(f"not over after {seconds} seconds") from None
        raise
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


def shrink(program: Program, kind: str, limit: int = 400) -> Program:
    """A smaller program that differs in the same way."""
    tries = 0
    shrunk = True
    while shrunk and tries < limit:
        shrunk = False
        for smaller in program.reductions():
            tries += 1
            try:
                # Without its last line a loop may never end.
                with at_most(_PATIENCE):
                    found = difference(smaller)
            except Exception:
                found = None
            if found is not None and found[0] == kind:
                program, shrunk = smaller, True
                break
            if tries >= limit:
                break
    return program

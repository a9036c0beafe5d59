"""Random differentiable programs as source text, and what must hold of their gradients.

A program is `def program(x, n)`: x is float64[4], n a small integer that decides trip counts (0 too), and the result a
scalar. Programs have loops to depth four with `break` and `continue`, conditionals on counters and on data, early
returns, lists, arrays, updates of elements, gathers, calls in loops, products and powers in place, integer and boolean
carries, and loop variables whose shapes change. Values stay of the order of one: what grows goes through `squash`.

`check` compares the staged gradient with that of the eager tape on the same Python code and with central differences;
and Hessians with each other, with their transposes and with differences of gradients.
"""

from __future__ import annotations

import itertools
import linecache
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import autograph as ag

PRELUDE = """\
import autograph as ag

HALF, MORE, LESS = ag.constant(0.5, ag.float64), ag.constant(1.3, ag.float64), ag.constant(-0.4, ag.float64)

def squash(s):
    return s / ag.sqrt(1.0 + s * s)

def blend(s, t):
    if s > t:
        return 0.7 * s + 0.2 * s * t
    return 0.7 * t - ag.sin(s)

def series(s, m):
    total = 0.1 * s
    for q in ag.range(m):
        total = ag.tanh(total + s)
        if total > 0.8:
            break
    return total

"""
MOST_STATEMENTS = 16
Pick = Callable[[Sequence[Any]], Any]


class Writer:
    """Writes one program; `pick` takes one of several choices, the first being the simplest."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.lines: list[str] = []
        self.left = MOST_STATEMENTS
        self.names = itertools.count()
        self.scalars = ["a", "b", "c"]
        self.integers = ["n", "k"]

    def text(self) -> str:
        self.lines = [
            "def program(x, n):",
            "    a, b, c = x[0], x[1], ag.sin(x[2]) * x[3]",
            "    v, w = x * x[1], x[1:3]",
            "    k = ag.constant(1)",
            "    flag = ag.constant(False)",
        ]
        self.block(1, loops=0, in_loop=False)
        self.loop(1, 0)
        self.block(1, loops=0, in_loop=False)
        self.lines.append("    return a + 0.7 * b - c + ag.reduce_sum(v * v) + ag.reduce_sum(ag.cos(w))")
        return PRELUDE + "\n".join(self.lines) + "\n"

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def index(self) -> str:
        return f"{self.pick(self.integers)} % 4"

    def scalar(self, deep: int = 2) -> str:
        name, number = self.pick(self.scalars), self.pick(["HALF", "MORE", "LESS"])
        if deep == 0:
            return self.pick([name, name, number, f"v[{self.index()}]", "x[3]"])
        one, two = self.scalar(deep - 1), self.scalar(deep - 1)
        return self.pick([
            name, f"({one} + {two})", f"({one} * {two})", f"({one} - {two})", f"ag.sin({one})", f"ag.tanh({one})",
            f"({one} / (1.5 + {two} * {two}))", f"ag.exp(-{one} * {one})", f"squash({one}) ** 2", "ag.reduce_sum(v)",
            f"squash({one}) ** ag.cast({self.pick(self.integers)} % 3, ag.float64)", f"ag.maximum({one}, {two})",
            f"blend({one}, {two})", f"series({one}, {self.pick(self.integers)})", "ag.reduce_mean(w * w)", "w[-1]",
            f"(2.0 + {one} * {one}) ** squash({two})", f"ag.math.log(1.2 + {one} * {one})", f"v[{self.index()}]",
            f"ag.reduce_max(v * {one})", f"ag.where(flag, {one}, {two})", f"ag.gather(v, {self.index()}) * {one}",
            f"(0.3 + ag.cast({self.pick(self.integers)}, ag.float64)) * {one}",
        ])  # fmt: skip

    def vector(self) -> str:
        s, t = self.scalar(1), self.scalar(1)
        return self.pick([
            f"v * squash({s})", "ag.sin(v)", "x - 0.5 * v", "ag.concat([v[1:], v[:1]], 0)", "v[::-1]",
            f"ag.tensor_scatter_nd_update(v, [[{self.index()}]], [{s}])",
            f"ag.tensor_scatter_nd_add(v, [[{self.index()}], [{self.index()}]], [squash({s}), {t}])",
            f"ag.gather(v, [{self.index()}, 0, {self.index()}, 2])", f"ag.stack([{s}, {t}, v[2], x[0]])",
            "ag.cumsum(v) * 0.3", f"ag.where(v > {s}, v * 0.5, x)",
            "ag.linalg.matvec(ag.ones([4, 4], ag.float64), v) * x",
            "ag.math.cumprod(v + 0.1)", "ag.reshape(ag.matmul(v[:, None], v[None, :]), [16])[2:6]",
        ])  # fmt: skip

    def condition(self) -> str:
        return self.pick([
            f"{self.pick(self.integers)} % 2 == 0", f"{self.scalar(1)} > {self.scalar(0)}", f"{self.index()} < 2",
            "flag",
            f"{self.scalar(0)} > 0.1 and {self.pick(self.integers)} < 3", f"not flag or {self.scalar(0)} < 0.3",
        ])  # fmt: skip

    def block(self, depth: int, loops: int, in_loop: bool) -> None:
        for _ in range(self.pick([1, 2, 3])):
            self.statement(depth, loops, in_loop)

    def statement(self, depth: int, loops: int, in_loop: bool) -> None:
        self.left -= 1
        kinds = ["assign", "assign", "product", "power", "sum", "vector", "vector", "integer", "flag"]
        if self.left > 0 and depth < 6:
            kinds += ["if", "if", "list", "array", "grow", "return"] + ["loop"] * 4 * (loops < 4)
        if in_loop:
            kinds += ["jump", "jump"]
        kind = self.pick(kinds)
        name = self.pick(["a", "b", "c"])
        if kind == "assign":
            self.add(depth, f"{name} = squash({self.scalar()})")
        elif kind == "product":
            self.add(depth, f"{name} *= 0.4 + 0.5 * squash({self.scalar(1)})")
        elif kind == "power":
            self.add(depth, f"{name} = squash({name})", f"{name} **= {self.pick(['2', '3', '1'])}")
        elif kind == "sum":
            self.add(depth, f"{name} += 0.3 * squash({self.scalar(1)})")
        elif kind == "vector":
            self.add(depth, f"v = {self.vector()}", "v = squash(v)")
        elif kind == "integer":
            self.add(depth, f"k = ({self.pick(['k + 1', 'k * 2 + n', 'k + n'])}) % 5")
        elif kind == "flag":
            self.add(depth, f"flag = {self.scalar(0)} > {self.scalar(0)}")
        elif kind == "if":
            self.add(depth, f"if {self.condition()}:")
            self.block(depth + 1, loops, in_loop)
            if self.pick([True, False]):
                self.add(depth, "else:")
                self.block(depth + 1, loops, in_loop)
        elif kind == "return":
            self.add(depth, f"if {self.condition()}:", f"    return {self.scalar()}")
        elif kind == "jump":
            self.add(depth, f"if {self.condition()}:", f"    {self.pick(['break', 'continue'])}")
        elif kind == "list":
            self.list(depth, loops)
        elif kind == "array":
            self.array(depth, loops)
        elif kind == "grow":
            index = f"i{next(self.names)}"
            self.add(depth, "w = x[1:3]", f"for {index} in ag.range({self.trips(loops)}):")
            self.add(depth + 1, f"w = ag.concat([w * squash({name}), [{self.scalar(1)}]], 0)")
        else:
            self.loop(depth, loops)

    def trips(self, loops: int) -> str:
        if loops > 1:  # few trips where loops are deep, for the sake of time
            return self.pick(["2", "n % 3", "k % 3"])
        return self.pick(["n", "3", "k", "ag.maximum(n - 1, 0)", "n % 3", "0"])

    def loop(self, depth: int, loops: int) -> None:
        index = f"i{next(self.names)}"
        kind = self.pick(["range", "range", "while", "until", "rows"])
        if kind == "range":
            self.add(depth, f"for {index} in ag.range({self.trips(loops)}):")
        elif kind == "rows":
            self.add(depth, f"{index} = ag.constant(0)", f"for s{index} in v:")
            self.add(depth + 1, f"{index} += 1", f"a = a * 0.6 + squash(s{index})")
        else:
            self.add(depth, f"{index} = ag.constant(0)")
            more = f" and {self.scalar(1)} < {self.pick(['0.6', '0.2', '1.5'])}" if kind == "until" else ""
            self.add(depth, f"while {index} < {self.trips(loops)}{more}:")
            self.add(depth + 1, f"{index} += 1")
        self.integers.append(index)
        self.block(depth + 1, loops + 1, in_loop=True)
        self.integers.remove(index)

    def list(self, depth: int, loops: int) -> None:
        items, index = f"items{next(self.names)}", f"i{next(self.names)}"
        self.add(depth, f"{items} = [a]", f"for {index} in ag.range({self.trips(loops)}):")
        self.integers.append(index)
        if self.pick([True, False]):
            self.statement(depth + 1, loops + 1, in_loop=True)
        self.add(depth + 1, f"{items}.append(squash({self.scalar(1)}))")
        self.integers.remove(index)
        use = self.pick(["stack", "pop", "read"])
        if use == "stack":
            self.add(depth, f"b = squash(ag.reduce_sum(ag.stack({items}) ** 2))")
        elif use == "pop":
            self.add(depth, f"b = {items}.pop() * squash(b)")
        else:
            self.add(depth, f"b = squash({items}[0] * {items}[-1] + b)")

    def array(self, depth: int, loops: int) -> None:
        values, index = f"values{next(self.names)}", f"i{next(self.names)}"
        self.add(depth, f"{values} = ag.TensorArray(ag.float64, size=5, element_shape=[], clear_after_read=False)")
        self.add(depth, f"for {index} in ag.range(5):")
        self.integers.append(index)
        if self.pick([True, False]):
            self.statement(depth + 1, loops + 1, in_loop=False)
        self.add(depth + 1, f"{values} = {values}.write({index}, squash({self.scalar(1)}))")
        self.integers.remove(index)
        self.add(
            depth, f"c = {values}.read({self.pick(['0', 'k % 5', 'n % 5'])}) + ag.reduce_prod({values}.stack() + 1.0)"
        )
        self.add(depth, "c = squash(c)")


def random_program(pick: Pick) -> str:
    return Writer(pick).text()


_numbers = itertools.count()


def load(text: str) -> Callable[..., Any]:
    """The function that a program's text defines; conversion finds its source through linecache."""
    filename = f"<random gradient {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"__name__": "random_program"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["program"]


def slope_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """(value, gradient by x) of function(x, n)."""

    def value_and_slope(x: Any, n: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = function(x, n)
        return y, tape.gradient(y, x, unconnected_gradients="zero")

    return value_and_slope


def hessian_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def hessian(x: Any, n: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            _, slope = slope_of(function)(x, n)
        return tape.jacobian(slope, x, unconnected_gradients="zero")

    return hessian


def differences(function: Callable[[Any], Any], x: Any, step: float) -> Any:
    """Central differences of function(x) by each element of x, stacked on a new first axis."""
    moves = step * np.eye(len(x))
    return np.stack([(function(x + move) - function(x - move)) / (2.0 * step) for move in moves])


def smooth_differences(function: Callable[[Any], Any], x: Any) -> Any | None:
    """Differences where two step widths agree; None near a jump, a kink or where digits run out."""
    wide, narrow = differences(function, x, 2e-5), differences(function, x, 5e-6)
    return narrow if np.allclose(wide, narrow, rtol=1e-6, atol=1e-7) else None


def check(text: str, x: Any, n: int, compiled: bool = False, second: bool = False) -> bool:
    """Raises AssertionError where gradients differ. False: no differences to compare with, x is too near to a kink."""
    program = load(text)
    stage = ag.function(program, jit_compile=compiled)
    point, count = ag.constant(x), ag.constant(n)
    value, slope = (t.numpy() for t in slope_of(program)(point, count))
    assert np.isfinite(value), "the program leaves the range of numbers"
    for name, found in (
        ("a tape round a function", slope_of(stage)(point, count)),
        ("a tape in a function", ag.function(slope_of(program), jit_compile=compiled)(point, count)),
    ):
        np.testing.assert_allclose(found[0], value, rtol=1e-10, atol=1e-12, err_msg=f"value, {name}")
        np.testing.assert_allclose(found[1], slope, rtol=1e-8, atol=1e-10, err_msg=f"gradient, {name}")
    smooth = smooth_differences(lambda at: program(ag.constant(at), count).numpy(), x)
    if smooth is None:
        return False
    np.testing.assert_allclose(slope, smooth, rtol=2e-5, atol=2e-6, err_msg="gradient against differences")
    if second:
        _check_second_order(program, stage, x, count, compiled)
    return True


def _check_second_order(program: Any, stage: Any, x: Any, count: Any, compiled: bool) -> None:
    point = ag.constant(x)
    hessian = ag.function(hessian_of(program), jit_compile=compiled)(point, count).numpy()
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-8, atol=1e-9, err_msg="the Hessian isn't symmetric")
    outside = hessian_of(stage)(point, count)
    np.testing.assert_allclose(outside, hessian, rtol=1e-8, atol=1e-9, err_msg="Hessian, tapes round a function")
    smooth = smooth_differences(lambda at: slope_of(program)(ag.constant(at), count)[1].numpy(), x)
    if smooth is not None:
        np.testing.assert_allclose(hessian, smooth, rtol=5e-5, atol=5e-6, err_msg="Hessian against differences")


def point_of(number: int) -> Any:
    """A point, float64[4], away from zeros and ties."""
    return np.random.default_rng(number).uniform(0.2, 1.1, 4) * np.array([1.0, -1.0, 1.0, 1.0])


def forget(lock: threading.Lock = threading.Lock()) -> None:
    """Drops the sources of programs that were loaded."""
    with lock:
        for name in [name for name in linecache.cache if name.startswith("<random gradient ")]:
            del linecache.cache[name]

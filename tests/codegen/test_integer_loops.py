"""Random loops over integers that index an array: native code, which proves indices right, does what the interpreter
does. Many of the programs end with an error, in both."""

import importlib.util
import random

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.kernel.source import NotNative
from tests.codegen.compare import run_both
from tests.codegen.test_counted_loops import graph_of

_COMPARISONS = ("<", "<=", ">", ">=", "!=", "==")


class _Program:
    """The source of one function of an array of `size` numbers and an integer `m`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.size = self.random.choice([3, 8, 20, 40])
        kind = self.random.choice(["{}", "ag.constant({}, ag.int32)", "ag.constant({}, ag.int64)"])
        starts = [f"    {name} = {kind.format(self.number())}" for name in "ijk"]
        wide = ["    m = ag.cast(m, ag.int64)"] if "int64" in kind else []
        head = ["import autograph as ag", "def f(x, m):", "    fuel, total = ag.constant(40), ag.constant(1)"]
        lines = [*head, *wide, *starts, *self.loop(4, 0), "    return i, j, k, x, total"]
        self.text = "\n".join(lines) + "\n"

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def number(self) -> str:
        usual = ["0", "1", "2", "-1", "-2", "3", str(self.size), str(self.size - 1), str(-self.size)]
        return self.pick(*usual * 2, "2147483647", "-2147483648", "65535")

    def atom(self) -> str:
        return self.pick("i", "j", "k", "m", self.number())

    def expression(self) -> str:
        a, b, v = self.atom(), self.atom(), self.pick("i", "j", "k")
        return self.pick(
            a, v, f"({a} + {b})", f"({a} - {b})", f"(({v} + {b}) // 2)", f"({v} * {b})", f"ag.maximum({v}, {b})",
            f"ag.minimum({v}, {b})", f"({v} % {self.size})",
        )  # fmt: skip

    def condition(self) -> str:
        left = self.pick("i", "j", "k", "i", "j", "k", "x[i]", "x[k]", "i * i", "j * k")
        found = f"{left} {self.pick(*_COMPARISONS)} {self.expression() if '[' not in left else '2'}"
        return f"not ({found} or j < k)" if self.random.random() < 0.1 else found

    def loop(self, indent: int, depth: int) -> list[str]:
        tests = [self.condition() for _ in range(self.random.randint(1, 2))]
        tests.insert(self.random.randint(0, len(tests)), "fuel > 0")
        head = f"{' ' * indent}while {' and '.join(tests)}:"
        return [head, f"{' ' * indent}    fuel -= 1", *self.block(indent + 4, depth + 1)]

    def block(self, indent: int, depth: int) -> list[str]:
        lines: list[str] = []
        space = " " * indent
        for _ in range(self.random.randint(1, 4)):
            v, place = self.pick("i", "j", "k"), self.pick("i", "j", "k", self.expression())
            kind = self.pick("step", "step", "set", "read", "write", "if", "loop")
            if kind == "if" and depth < 4:
                lines += [f"{space}if {self.condition()}:", *self.block(indent + 4, depth + 1)]
            elif kind == "loop" and depth < 2:
                lines += self.loop(indent, depth)
            elif kind == "set":
                lines.append(f"{space}{v} = {self.expression()}")
            elif kind == "read":
                lines.append(f"{space}total = total * 3 + x[{place}]")
            elif kind == "write":
                lines.append(f"{space}x = ag.tensor_scatter_nd_update(x, [[{place}]], [total % 5])")
            else:
                lines.append(f"{space}{v} {self.pick('+=', '-=')} {self.pick('1', '1', '2', '3', 'j')}")
        return lines


@pytest.mark.parametrize("seed", range(60))
def test_a_random_loop(seed, tmp_path):
    program = _Program(seed)
    path = tmp_path / f"program_{seed}.py"
    path.write_text(program.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.random.default_rng(seed).integers(-3, 10, program.size).astype(np.int32)
    given = x, np.int32([program.size, 0, -1, 3, 2**31 - 1][seed % 5])
    try:
        expected, actual = run_both(graph_of(module.f, *map(ag.constant, given)), given)
    except (ag.errors.OpError, TypeError, ValueError, OverflowError, NotNative) as reason:
        pytest.skip(f"not a program for kernels: {type(reason).__name__}")
    if isinstance(expected, Exception):
        assert type(actual) is type(expected)
        assert str(actual) == str(expected)
    else:
        for mine, other in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(mine, other)

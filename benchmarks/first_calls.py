"""What first calls take, with and without `jit_compile`: `python -m benchmarks.first_calls` writes docs/first_calls.md.

Twelve programs over graphs, grids, tables, objects and small arrays run in processes of their own with an empty kernel
cache: as plain Python (those over arrays with NumPy), with `jit_compile=True`, and by default.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag
from benchmarks.peers import environment

PAGE = Path(__file__).resolve().parent.parent / "docs" / "first_calls.md"
CALLS = 30


# --- programs --------------------------------------------------------------------------------------------------------


def bellman_ford(start, target, weight, source, n):
    distance = [1e9] * 300
    distance[source] = 0.0
    changed = True
    while changed:
        changed = False
        for u in range(n):
            for e in range(start[u], start[u + 1]):
                through = distance[u] + weight[e]
                if through < distance[target[e]]:
                    distance[target[e]] = through
                    changed = True
    return distance[n - 1]


def breadth_first(start, target, source, n):
    level = [0] * 300
    queue = [source]
    level[source] = 1
    deepest = 0
    while queue:
        u = queue.pop(0)
        for e in range(start[u], start[u + 1]):
            v = target[e]
            if level[v] == 0:
                level[v] = level[u] + 1
                deepest = max(deepest, level[v])
                queue.append(v)
    return deepest


def longest_collatz(limit):
    best, where = 0, 0
    i = 1
    while i < limit:
        n, steps = i, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        if steps > best:
            best, where = steps, i
        i += 1
    return where


def common_subsequence(a, b, n):
    before = [0] * 101
    for i in range(n):
        row = [0] * 101
        for j in range(n):
            if a[i] == b[j]:
                row[j + 1] = before[j] + 1
            else:
                row[j + 1] = max(before[j + 1], row[j])
        before = row
    return before[n]


def knapsack(weights, values, n, capacity):
    best = [0.0] * 201
    for i in range(n):
        c = capacity
        while c >= weights[i]:
            best[c] = max(best[c], best[c - weights[i]] + values[i])
            c -= 1
    return best[capacity]


def bouncing_ball(height, speed, dt, steps):
    hits = 0
    for _ in range(steps):
        speed -= 9.81 * dt
        height += speed * dt
        if height < 0.0:
            height = -height
            speed = -0.9 * speed
            hits += 1
    return height + hits


class Body:
    def __init__(self, x, y, vx, vy):
        self.x, self.y, self.vx, self.vy = x, y, vx, vy

    def step(self, dt):
        cube = (self.x * self.x + self.y * self.y) ** 1.5
        self.vx -= self.x / cube * dt
        self.vy -= self.y / cube * dt
        self.x += self.vx * dt
        self.y += self.vy * dt


def orbit(x, steps):
    body = Body(x, 0.0, 0.0, 1.0)
    for _ in range(steps):
        body.step(0.001)
    return body.x


def cube_roots(first, count):
    total = 0.0
    for k in range(count):
        a = x = first + k
        while abs(x * x * x - a) > 1e-9:
            x = x - (x * x * x - a) / (3.0 * x * x)
        total += x
    return total


def mandelbrot(n, limit):
    inside = 0
    for i in range(n):
        for j in range(n):
            a, b = -2.0 + 3.0 * float(i) / float(n), -1.5 + 3.0 * float(j) / float(n)
            x = y = 0.0
            k = 0
            while k < limit and x * x + y * y < 4.0:
                x, y = x * x - y * y + a, 2.0 * x * y + b
                k += 1
            if k == limit:
                inside += 1
    return inside


def stack_machine(code, n, x):
    stack = [x]
    i = 0
    while i < n:
        if code[i] == 0:
            stack.append(stack[-1] + 1.0)
        elif code[i] == 1:
            b = stack.pop()
            a = stack.pop()
            stack.append(a * 0.5 + b)
        else:
            stack[-1] = math.sqrt(abs(stack[-1]))
        i += 1
    return stack[-1]


def diffusion(u, rounds, xp=ag):
    for _ in range(rounds):
        u = u + 0.1 * (xp.roll(u, 1, 0) + xp.roll(u, -1, 0) - 2.0 * u)
    return (u * u)[0]


def conjugate_gradients(a, b, n, xp=ag.experimental.numpy):
    x = b * 0.0
    r = b
    p = r
    square = xp.sum(r * r)
    for _ in range(n):
        product = xp.dot(a, p)
        alpha = square / xp.sum(p * product)
        x = x + alpha * p
        r = r - alpha * product
        before = square
        square = xp.sum(r * r)
        if square < 1e-20:
            break
        p = r + (square / before) * p
    return xp.sum(x)


@dataclass(frozen=True)
class Program:
    """A function of arrays and numbers. is_over_arrays: plain Python runs it with NumPy, not over lists."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    is_over_arrays: bool = False


def programs() -> dict[str, Program]:
    """The programs by name."""
    random = np.random.default_rng(0)
    start, target = np.arange(301, dtype=np.int64) * 4, random.integers(0, 300, 1200)
    letters = random.integers(0, 4, 100), random.integers(0, 4, 100)
    matrix = random.normal(size=(40, 40))
    goods = random.integers(1, 20, 50).astype(np.int32), random.uniform(0, 1, 50).astype(np.float32)
    found = [
        Program(bellman_ford, (start, target, random.uniform(0.1, 1, 1200), 0, 300)),
        Program(breadth_first, (start, target, 0, 300)),
        Program(longest_collatz, (2000,)),
        Program(common_subsequence, (*letters, 100)),
        Program(knapsack, (*goods, 50, 200)),
        Program(bouncing_ball, (1.0, 0.0, 1e-3, 20000)),
        Program(orbit, (1.0, 5000)),
        Program(cube_roots, (np.float64(2.0), 1000)),
        Program(mandelbrot, (30, 50)),
        Program(stack_machine, (np.array([0, 0, 1, 2] * 500), 2000, 1.5)),
        Program(diffusion, (random.uniform(size=200), 200), True),
        Program(conjugate_gradients, (matrix @ matrix.T + 40 * np.eye(40), random.normal(size=40), 40), True),
    ]
    return {program.function.__name__: program for program in found}


# --- measuring -------------------------------------------------------------------------------------------------------


def times(program: Program, mode: str, calls: int) -> tuple[list[float], float]:
    """The seconds of each call, and the result. mode: plain, jit or default."""
    function: Callable[..., Any] = program.function
    if mode == "plain":
        given = [
            a.tolist() if isinstance(a, np.ndarray) and not program.is_over_arrays else a for a in program.arguments
        ]
        if program.is_over_arrays:
            given.append(np)
    else:
        function = ag.function(function, jit_compile=True if mode == "jit" else None)
        given = [ag.constant(a) for a in program.arguments]
    spent, result = [], math.nan
    for _ in range(calls):
        began = time.perf_counter()
        result = float(function(*given))
        spent.append(time.perf_counter() - began)
    return spent, result


def in_process(name: str, mode: str, calls: int) -> tuple[list[float], float]:
    """`times` in a process of its own, with an empty kernel cache."""
    with tempfile.TemporaryDirectory(prefix="autograph-benchmarks-", ignore_cleanup_errors=True) as cache:
        command = [sys.executable, "-m", "benchmarks.first_calls", "--one", name, mode, str(calls)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(cache))
    spent, result = json.loads(done.stdout.splitlines()[-1])
    return spent, result


def row(name: str, calls: int = CALLS) -> list[str]:
    """A program's line of the table.

    Raises ValueError if the results of the three ways differ.
    """
    (plain, expected), (jit, compiled), (default, found) = [
        in_process(name, m, calls) for m in ("plain", "jit", "default")
    ]
    for result in (compiled, found):
        if not math.isclose(result, expected, rel_tol=1e-4):  # numbers that aren't given as float64 are float32
            raise ValueError(f"{name}: {result} instead of {expected}")
    python, native = min(plain), min(jit[1:])
    return [
        name.replace("_", " "),
        f"{python * 1e3:.2f}",
        f"{jit[0] * 1e3:.0f}",
        f"{native * 1e3:.3f}",
        f"{default[0] * 1e3:.0f}",
        f"{sorted(default[1:])[len(default) // 2] / python:.1f}",
        f"{max(default[1:]) / python:.1f}",
        f"{sum(default) / sum(jit):.2f}",
    ]


_HEAD = """# First calls, measured

Written by `python -m benchmarks.first_calls`. Each program runs in a process of its own with an empty kernel cache; the
bytecode of our modules is there, as after an installation. The columns: plain Python's time (the last two programs:
NumPy's); with `jit_compile=True` the first call, which compiles, and the fastest one after it; by default the first
call, which traces and interprets, the median and the slowest of the next {others}, in units of plain Python's time;
and the sum of all {calls} calls by default, in units of that with `jit_compile=True`. The interpreter answers while a
background thread compiles, and both share Python's lock, so the slowest call is one that ran beside the compiler.

| program | plain, ms | jit: first | jit: later | default: first, ms | median / plain | slowest / plain | sum / jit's |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_calls", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"programs (default: all): {', '.join(programs())}")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "MODE", "CALLS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        name, mode, calls = options.one
        print(json.dumps(times(programs()[name], mode, int(calls))))
        return 0
    for mode in ("jit", "default"):
        in_process("bouncing_ball", mode, 30)  # leaves the bytecode of our modules, as an installation does
    lines = []
    for name in options.names or programs():
        lines.append(f"| {' | '.join(row(name))} |")
        print(lines[-1], flush=True)
    if not options.names:
        PAGE.write_text(_HEAD.format(calls=CALLS, others=CALLS - 1) + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

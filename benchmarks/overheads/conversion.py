"""Conversion of a 60-line function: nested loops, breaks, returns, try, closures. Each call converts a new copy."""

import itertools
import linecache
from collections.abc import Callable
from typing import Any

from benchmarks import peers
from benchmarks.harness import Call, Case

SOURCE = """\
def work(xs, n, k):
    total, best, seen = 0, 0, {}
    for i in range(n):
        x = xs[i % len(xs)]
        if x < 0:
            continue
        if (x > k and total > 10) or i == 3:
            total += x * 2
            if x > best:
                best = x
        elif x == k:
            total -= 1
            break
        else:
            seen[x] = seen.get(x, 0) + 1
        j = 0
        while j < x % 5:
            j += 1
            if j == 3:
                continue
            total += j if j % 2 else -j
    above = [a + 1 for a in xs if a > k]
    for q in above:
        if q in seen and not q == 3:
            try:
                total += 10 // (q - 4)
            except ZeroDivisionError:
                total -= 4
            finally:
                total += 1
    if 0 < total < 3:
        return total
    y = max(xs) - min(xs)
    while y > 0:
        y -= 1
        for z in range(3):
            if z * y > total:
                total += sum(xs)
                break
            total -= 1

    def shifted(a, b=2):
        if a > b:
            return a - b
        return b

    s = 0
    for c in xs:
        s += shifted(c)
        if s > 50:
            s = s % 7
    while s > 0:
        s -= 1
        if s == 2:
            return total + best
        if s == k:
            best += 1
        elif s > k:
            best += shifted(s, k)
        else:
            best -= 1
    assert best is not None
    return total + best
"""
_numbers = itertools.count()


def _new_copy() -> Any:
    number = next(_numbers)
    filename = f"<conversion benchmark {number}>"
    # TensorFlow knows code objects by value: no two copies may be equal.
    text = SOURCE.replace("total, best, seen = 0, 0, {}", f"total, best, seen, copy = 0, 0, {{}}, {number}")
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"__name__": "conversion_benchmark"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["work"]


def _converts(convert: Callable[[Any], Any]) -> Call:
    def call() -> int:
        result: int = convert(_new_copy())([3, -1, 5, 2, 9, 4], 8, 4)
        return result

    return call


def ours(quick: bool) -> Call:
    from autograph.convert.api import to_graph

    return _converts(to_graph)


def tensorflow(quick: bool) -> Call:
    return _converts(peers.load("tensorflow").autograph.to_graph)


def python(quick: bool) -> Call:
    return _converts(lambda function: function)


CASES = [
    Case(
        "conversion",
        "Conversion of a 60-line function, and one run of it on Python numbers",
        {peers.AUTOGRAPH: ours, "tf.autograph.to_graph": tensorflow, "plain Python, not converted": python},
    )
]

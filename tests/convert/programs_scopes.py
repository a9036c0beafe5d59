"""Functions, closures, classes, parameters, unreachable code and docstrings."""

from __future__ import annotations

import functools

from tests.convert.programs import case

counter = 0


@case((3,))
def uses_global(n):
    global counter
    counter = 0
    for i in range(n):
        counter += i
        if i:
            counter *= 2
    return counter


@case((3,))
def global_in_block(n):
    if n:
        global counter
        counter = n
    return counter


@case((3,))
def uses_nonlocal(n):
    total = 0

    def add(x):
        nonlocal total
        if x > 0:
            total += x
        return total

    for i in range(n):
        add(i)
    return total


@case((3,))
def closure_sees_changes(n):
    x = 0

    def read():
        return x

    seen = []
    while x < n:
        x += 1
        seen.append(read())
    return seen


@case((5,), (1,))
def recursion(n):
    if n <= 1:
        return 1
    return n * recursion(n - 1)


@case((6,))
def local_recursion(n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return [fib(i) for i in range(n)]


@case((2,), (5,))
def class_in_function(n):
    class Point:
        scale = n
        if n > 3:
            scale = n and 3
        names = [str(i) for i in range(2)]

        def __init__(self, x):
            self.__x = x
            if x < 0:
                self.__x = 0

        @property
        def x(self):
            return self.__x * self.scale if self.__x else "zero"

        def __repr__(self):
            return f"Point({self.x!r})"

    return [Point(-1), Point(2).x, Point.names]


@case((1,), (0,))
def inheritance(x):
    class Base:
        def f(self, v):
            return ["base", v]

    class Derived(Base):
        def f(self, v):
            if v:
                return super().f(v)
            for _ in range(1):
                if not v:
                    return super().f("none")

    return Derived().f(x)


@case((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4))
def parameters(a, b=10, *rest, key=5, **options):
    if rest:
        b += sum(rest)
    for _ in range(2):
        key += a
    return a, b, rest, key, options


@case((1, 2), (3, 0))
def positional_only(a, b, /):
    while b:
        a, b = b, a % b
    return a


@case((3,))
def lambdas(n):
    pick = lambda x: "big" if x > 1 and x < 5 else "small"  # noqa: E731
    return list(map(pick, range(n))), sorted(range(n), key=lambda x: -x)


@case((3,))
def partials(n):
    def scale(factor, x):
        if x > 1:
            return factor * x
        return x

    return [functools.partial(scale, 10)(i) for i in range(n)]


@case((4,))
def callable_objects(n):
    class Adder:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x + self.k if x > 1 else x

    add = Adder(100)
    return [add(i) for i in range(n)]


@case((4,))
def generators(n):
    def evens(limit):
        for i in range(limit):
            if i % 2:
                continue
            if i > 6:
                return
            yield i
        print("exhausted")

    return list(evens(n)), sum(evens(20))


@case((3,))
def reads_locals(n):
    total = 0
    for i in range(n):
        extra = i
        if i == 1:
            found = sorted(k for k in locals() if k in ("total", "i", "extra", "n"))
        total += extra
    return found, eval("total + n")


@case((5,))
def decorated(n):
    def twice(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(f(*args))

        return wrapper

    @twice
    def step(x):
        if x % 2:
            return x * 3
        return x + 1

    return step(n), step.__name__


@case((1,), (2,), ("x",), ([1, 2],), ({"a": 3},))
def matching(value):
    match value:
        case 1:
            return "one"
        case [a, *rest] if rest:
            result = a, rest
        case {"a": inner}:
            if inner:
                return "inner", inner
            result = None
        case str() as text:
            result = text
        case _:
            result = "other"
    return result


@case((True,), (False,))
def looks_at_frames(x):
    """What counts frames, or reads its own, keeps its place."""
    import inspect
    import sys

    mine = sys._getframe().f_code.co_name
    if x:
        seen = sys._getframe(1).f_code.co_name, inspect.currentframe().f_code.co_name == mine
        later = x and "later" in locals()
    else:
        seen = sys._getframe().f_back.f_code.co_name, 0
        later = "seen" in locals() if not x else None
    return seen, later

"""Python functions whose converted form must do exactly what they do: see test_execution.py.

Each is listed in CASES with the arguments to call it with. They meet no tensors.
"""

from __future__ import annotations

import contextlib
import functools

counter = 0
CASES: list[tuple] = []


def case(*argument_lists):
    """Registers a function with the argument tuples to run it on."""

    def register(function):
        CASES.append((function, argument_lists))
        return function

    return register


class Boom(Exception):
    pass


@contextlib.contextmanager
def logged(name):
    print("enter", name)
    try:
        yield name
    finally:
        print("exit", name)


# --- conditionals ---


@case((1,), (-1,), (0,))
def branches(x):
    if x > 0:
        y = "positive"
    elif x < 0:
        y = "negative"
    else:
        y = "zero"
    return y


@case((0,), (1,))
def unbound_after_if(flag):
    if flag:
        value = 1
    return value


@case((0,), (1,))
def unbound_read_in_branch(flag):
    if flag:
        print(later)
    later = 1
    return later


@case((3,), (30,), (300,))
def early_returns(x):
    if x < 10:
        return "small"
    x = x + 1
    if x < 100:
        return "medium", x
    return "large", x


@case((1, 1), (1, 0), (0, 1), (0, 0))
def nested_returns(a, b):
    if a:
        if b:
            return "both"
        print("only a")
    else:
        print("not a")
    return "end"


@case((0,), (1,), (2,))
def falls_off(x):
    if x == 1:
        return "one"
    if x == 2:
        print("two")


@case((0,), (1,))
def deletes(flag):
    x = 5
    if flag:
        del x
    return x


@case((0,), (1,))
def annotated(flag):
    total: int = 0
    if flag:
        step: int = 2
        total: int = total + step
    else:
        other: int
    return total


@case((1,), (0,))
def returns_or_raises(x):
    if x:
        return "fine"
    else:
        raise Boom("no")


@case((5,), (0,))
def imports_in_branch(x):
    if x:
        import math as m
        from os import path
    else:
        m = path = None
    return m and m.sqrt(x) and path.join("a", "b")


# --- loops ---


@case((0,), (5,))
def counting(n):
    i = total = 0
    while i < n:
        total += i
        i += 1
    return total, i


@case(([],), ([1, 2, 3],))
def late_binding(xs):
    functions = []
    for x in xs:
        y = x * 10
        functions.append(lambda: (x, y))
    return [f() for f in functions]


@case(([1, 2, 3],))
def generator_late_binding(xs):
    pending = []
    for x in xs:
        pending.append(x + k for k in (1, 2))
    return [list(g) for g in pending]


@case(([],), ([4, 5],))
def loop_variable_after(xs):
    for x in xs:
        pass
    return x


@case(([1, None, 3, 9, 2],), ([],), ([7],))
def break_and_continue(xs):
    seen = []
    for x in xs:
        if x is None:
            continue
        if x > 5:
            break
        seen.append(x)
    return seen


@case(([1, 2, 3, 4, 5, 6, 7],))
def guarded_continue(xs):
    out = []
    for x in xs:
        if x % 2:
            if x % 3 == 0:
                continue
            out.append(("odd", x))
        else:
            if x == 6:
                break
            out.append(("even", x))
        out.append("tail")
    return out


@case(([1, 2, 3],), ([1, 20, 3],), ([],))
def for_else(xs):
    for x in xs:
        if x > 10:
            print("found", x)
            break
    else:
        print("not found")
    return "done"


@case((0,), (3,), (7,))
def while_else(n):
    i = 0
    while i < n:
        i += 1
        if i == 5:
            break
        if i % 2:
            continue
        print(i)
    else:
        i = -1
    return i


@case(([3, 1, 2], 1), ([3, 1, 2], 9), ([], 0))
def find(xs, wanted):
    for index, x in enumerate(xs):
        if x == wanted:
            return index
    return None


@case(([[1, 2], [3, 4]], 3), ([[1, 2], [3, 4]], 5), ([], 1))
def find_nested(rows, wanted):
    for i, row in enumerate(rows):
        for j, x in enumerate(row):
            if x == wanted:
                return i, j
        print("row", i)
    else:
        print("no rows left")
    return "nothing"


@case(([[1, 2, 0, 4], [0], [5, 6]],), ([],))
def nested_breaks(rows):
    out = []
    for row in rows:
        for x in row:
            if x == 0:
                break
            if x == 5:
                continue
            out.append(x)
        else:
            out.append("full")
            continue
        out.append("cut")
        if len(out) > 6:
            break
    return out


@case((1,), (27,))
def endless(n):
    steps = 0
    while True:
        if n == 1:
            return steps
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1


@case((3,))
def break_keeps_iterator(n):
    source = iter(range(10))
    for x in source:
        if x == n:
            break
    return list(source)


@case((3,))
def return_keeps_iterator(n):
    source = iter(range(10))

    def take():
        for x in source:
            if x == n:
                return x

    return take(), list(source)


@case((2,), (9,))
def exception_leaves_state(n):
    x = i = 0
    try:
        for i in range(5):
            x += i
            if i == n:
                raise Boom(x)
            x += 100
    except Boom as error:
        print("caught", error)
    return x, i


@case((2,))
def generator_closed_on_break(n):
    def source():
        try:
            yield from range(5)
        finally:
            print("closed")

    for x in source():
        if x == n:
            break
    print("after")
    return x


@case((2,))
def generator_closed_on_error(n):
    def source():
        try:
            yield from range(5)
        finally:
            print("closed")

    try:
        for x in source():
            if x == n:
                raise Boom
    except Boom:
        print("after")


@case(([(1, (2, 3)), (4, (5, 6))],))
def unpacking_target(pairs):
    total = 0
    for a, (b, *c) in pairs:
        total += a * b + len(c)
    return total, a, b, c


@case(([5, 6, 7],))
def attribute_target(xs):
    class Box:
        pass

    box, d = Box(), {}
    for box.x in xs:
        for d["k"] in range(box.x):
            pass
    return box.x, d


@case((4,))
def unbound_in_loop(n):
    for i in range(n):
        if i == 2:
            print(seen)
        if i == 1:
            seen = i
    for i in range(n):
        if i == 0:
            print(never)
        if i > n:
            never = 1


@case((3,))
def previous_value(n):
    for i in range(n):
        if i > 0:
            print("previous", last)
        last = i * i


@case((5,))
def temporaries(n):
    for i in range(n):
        square = i * i
        if square > 3:
            half = square / 2
            print(half)
    return square


@case(("",), ("a,b;c",))
def walrus_in_test(text):
    parts = []
    while (cut := text.partition(",")) and cut[0]:
        parts.append(cut[0])
        text = cut[2]
    return parts, cut


@case(([3, 8, 1],), ([],))
def walrus_in_comprehension(xs):
    found = [y for x in xs if (y := x * 2) > 4 or x]
    if found:
        last = y
    else:
        last = None
    return found, last


# --- exceptions and context managers ---


@case((0,), (1,), (2,))
def try_everything(x):
    try:
        print("try")
        if x == 1:
            raise Boom("one")
        if x == 2:
            return "two"
    except Boom as error:
        print("except", error)
        result = "handled"
    else:
        print("else")
        result = "fine"
    finally:
        print("finally")
    return result


@case((4,))
def loop_with_finally(n):
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            print("body", i)
        finally:
            print("finally", i)
    return i


@case((4,))
def break_skips_else(n):
    for i in range(n):
        try:
            if i == 2:
                break
            if i == 1:
                continue
        except Boom:
            pass
        else:
            print("else", i)
    return i


@case((0,), (1,))
def finally_swallows(x):
    try:
        if x:
            raise Boom
        return "try"
    finally:
        if x:
            return "finally"


@case((3,))
def finally_breaks(n):
    for i in range(n):
        try:
            if i == 1:
                raise Boom
        finally:
            if i == 1:
                break
        print(i)
    return i


@case((3,))
def finally_continues(n):
    for i in range(n):
        try:
            if i == 1:
                raise Boom
            print("try", i)
        finally:
            print("finally", i)
            if i == 1:
                continue
        print(i)
    return i


@case((0,), (1,), (2,))
def return_in_with(x):
    with logged("outer") as name:
        if x == 1:
            return name
        with logged("inner"):
            if x == 2:
                return "inner"
            print("body")
    return "end"


@case((3,))
def break_in_with(n):
    for i in range(n):
        with logged(i):
            if i == 1:
                break
            print("body", i)
    return i


@case((0,), (1,))
def suppressed(x):
    with contextlib.suppress(Boom):
        if x:
            raise Boom
        return "returned"
    return "suppressed"


@case((5,))
def suppressed_in_loop(n):
    for i in range(n):
        with contextlib.suppress(ZeroDivisionError):
            value = 10 // (i - 2)
        print(value)


@case((1,), (0,))
def except_name_unbound(x):
    error = "outer"
    try:
        if x:
            raise Boom("inner")
    except Boom as error:
        print(repr(error))
    return error


@case((0,), (1,))
def raise_from(x):
    try:
        if x:
            raise KeyError("k")
        [][0]
    except LookupError as error:
        raise Boom("wrapped") from error


@case((0,), (1,), (2,))
def return_in_handler_in_loop(x):
    while True:
        try:
            if x == 0:
                raise Boom
            if x == 1:
                return "one"
            x -= 1
        except Boom:
            return "boom"
        finally:
            print("x", x)


# --- scopes ---


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


# --- expressions ---


class Noisy:
    def __init__(self, name, truth=True):
        self.name, self.truth = name, truth

    def __bool__(self):
        print("bool", self.name)
        return self.truth

    def __lt__(self, other):
        print(self.name, "<", other.name)
        return self.truth

    def __repr__(self):
        return self.name


@case((True, True), (True, False), (False, True), (False, False))
def evaluation_order(p, q):
    def make(name, truth):
        print("make", name)
        return Noisy(name, truth)

    results = [make("a", p) and make("b", q) and make("c", True)]
    results.append(make("a", p) or make("b", q) or make("c", True))
    results.append(make("x", p) if make("y", q) else make("z", True))
    results.append(make("a", p) < make("b", q) < make("c", True))
    results.append(not make("n", p))
    return results


@case((0,), (1,), (5,))
def chains(x):
    return 0 < x < 3, 0 <= x <= x + 1 < 4, x in [1, 5] and x not in {5}, 0 < (y := x * 2) < 9, y


@case((0,), (4,))
def assertions(x):
    assert x >= 0
    assert x, f"x is {x}"
    return x


@case(([1, 0, 2],))
def comprehensions(xs):
    squares = {x: x * x for x in xs if x and x > 0}
    pairs = [(a, b) for a in xs for b in range(a) if a or b]
    flags = {bool(x) or None for x in xs}
    lazily = list(x if x else -1 for x in xs)
    chained = [x for x in (xs if 0 < len(xs) < 5 else [])]
    return squares, pairs, sorted(map(str, flags)), lazily, chained


@case(("n", 3))
def strings(name, n):
    return f"{name!r}: {n if n > 1 else 'few'} {[i for i in range(n) if not i % 2]} {max(1, n):>{n}}"


@case(([1, 2],), (None,))
def short_circuit_default(xs):
    return xs and xs[0] or "default"


@case((3,))
def conditional_lambda(n):
    f = (lambda x: x + 1) if n > 2 else (lambda x: x - 1)
    return f(n), (lambda *a, k=(n or 1): (a, k))(1, 2)


@case((2,), (0,))
def walrus_and(x):
    if x and (half := x / 2) and half > 0:
        return half
    return "none"


@case((3,))
def star_arguments(n):
    def show(*args, **kwargs):
        return args, kwargs

    return show(*range(n), *[9], a=1, **{"b": n})


@case((3,))
def shadowed_builtins(n):
    def len(x):
        return "mine"

    print = lambda *a: a  # noqa: E731
    return len([1]), print(n)


@case((10,))
def builtin_functions(n):
    xs = list(range(n))
    return (
        sum(xs), sum(xs, 5), min(xs), max(3, 4), max(xs, key=lambda x: -x), any(xs), all(xs), len(xs), abs(-n),
        int("7"), int("11", 2), float("1.5"), bool(xs), round(2.567, 1), round(2.5), list(zip(xs, "abc")),
        list(enumerate("ab", 5)), list(reversed(xs))[:2], min([], default=None), divmod(7, 2), pow(2, 5, 7),
    )  # fmt: skip


@case((3,))
def bad_calls(n):
    for thing in (len, range, zip, int):
        try:
            thing(1, 2, 3, 4, 5) if thing is not zip else thing(1)
        except TypeError as error:
            print(error)
    return n()


@case((2,))
def unreachable_code(n):
    if n:
        return shadow_free(n)
        other = 1
    while True:
        return n
        n = 3


def shadow_free(x):
    return [x]


@case((5,))
def unreachable_makes_local(n):
    for i in range(n):
        if i == 2:
            return counter
            counter = 1
    return n


@case((4,))
def augmented_places(n):
    class Box:
        total = 0

    box, d, xs = Box(), {"k": 1}, [0, 0]
    for i in range(n):
        box.total += i
        d["k"] *= 2
        xs[i % 2] += i
        if i == 2:
            d["new"] = box.total
            del d["k"]
            d["k"] = 5
    return box.total, d, xs


@case((3,))
def async_functions(n):
    import asyncio

    async def step(i):
        await asyncio.sleep(0)
        if i == 1:
            return "one"
        return i * 2

    async def run():
        out = []
        for i in range(n):
            value = await step(i)
            if value == "one":
                continue
            out.append(value)
        return out, [await step(i) for i in range(2)]

    return asyncio.run(run())


@case((0,), (1,))
def docstring(flag):
    """Has a docstring."""
    if flag:
        """Not a docstring."""
        result = 1
    else:
        result = docstring.__doc__
    return result


@case((4,))
def many_closures(n):
    def outer(a):
        def middle(b):
            def inner(c):
                nonlocal a
                if c % 2:
                    a += b + c
                return a

            for i in range(b):
                inner(i)
            return a

        return [middle(k) for k in range(n)], a

    return outer(1)

"""Expressions, built-in functions, and what is left over."""

from __future__ import annotations

from tests.convert.programs import case

counter = 0


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


@case((True,), (False,))
def assertion_message_reads_an_unbound_variable(x):
    y: str
    assert x, y
    return x

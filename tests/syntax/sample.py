"""Functions in odd places, for test_source.py; ``MARKS`` in comments is looked up by the tests."""

# The layout is the point: several things on a line, text at the margin.
# fmt: off
# ruff: noqa

import functools

K = 10


def plain(x, y=2):
    """Doc."""
    return x + y  # MARK plain


def keep(fn):
    return fn


def keep_with(*_, **__):
    return keep


@keep
@keep_with(
    1,
    key=lambda q: q,
)
def decorated(x):
    return x + K  # MARK decorated


@(
    keep
)
def strangely_decorated(x):
    return x  # MARK strangely_decorated


def wide(a, /, b, *args, c=3, d, **kw):
    return a, b, args, c, d, kw


def text_at_margin():
    text = """
def not_this(): pass
at the margin
"""

    def inner():
        return """
  x
at the margin
""" + str(K)
    # a comment

# a comment at the margin

    return text, inner


class Outer:
    __secret = 5

    class Inner:
        __secret = 6

        def method(self, __p=1):
            return self.__secret, __p  # MARK method

        def maker(self):
            def made():
                return self.__secret, __class__

            return made, lambda: self.__secret

    def uses_super(self):
        return super().__repr__()

    async def coroutine(self):
        return self.__secret

    @staticmethod
    def static(x):
        return x

    @property
    def value(self):
        return self.__secret


def counter():
    n = 0

    def bump(by=1):
        nonlocal n
        n += by
        return n

    def read():
        return n

    return bump, read


def recursive_local():
    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    return fact


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)


def squares(n):
    for i in range(n):
        yield i * i


one = lambda x: x + 1
pair = (lambda x: x + 2, lambda x: x + 3, lambda y: y + 3)
nested = lambda x: lambda y: lambda x: (x, y)
twins = [lambda: K, lambda: K]
spread = (
    lambda x: x
    + 4
)
constants = (lambda: 1, lambda: 2, lambda: "é", lambda: 3, lambda x: 4, lambda *x: 5)
shapes = (lambda a, b=1: a, lambda *a, b: a, lambda a, /, b: b, lambda: (lambda: 7)())
def closing(k): return [lambda x: x + k, lambda x: x - k, lambda x: (k, [k for _ in x])]
if K: one_line = lambda x: (x if x else K); other = lambda x: (x and K)


def wrapped(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return fn(*args)

    return wrapper


@wrapped
def inside(x):
    return x


def tail(x): return x if x else """
last"""

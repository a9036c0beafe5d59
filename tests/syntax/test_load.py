"""Loading: a function loaded from its own unchanged tree must be as good as the original."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import textwrap
import traceback
import types

import pytest

from autograph.syntax.load import is_loaded_code, load
from autograph.syntax.parse import parse
from autograph.syntax.source import find

from . import sample
from .test_source import FUNCTIONS, load_module


def reloaded(fn):
    return load(fn, find(fn).node, {})


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: f"{fn.__qualname__}:{fn.__code__.co_firstlineno}")
def test_everything_but_the_code_is_the_same(fn):
    made = reloaded(fn)
    assert made is not fn
    assert isinstance(made, types.FunctionType)
    assert made.__globals__ is fn.__globals__
    assert made.__defaults__ is fn.__defaults__
    assert made.__kwdefaults__ == fn.__kwdefaults__
    assert made.__annotations__ == fn.__annotations__
    assert made.__dict__ == fn.__dict__
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        assert getattr(made, name) == getattr(fn, name)
    assert inspect.signature(made, follow_wrapped=False) == inspect.signature(fn, follow_wrapped=False)
    assert dict(zip(made.__code__.co_freevars, made.__closure__ or ())) == dict(
        zip(fn.__code__.co_freevars, fn.__closure__ or ())
    )
    assert made.__code__.co_filename == fn.__code__.co_filename
    assert made.__code__.co_firstlineno == fn.__code__.co_firstlineno
    assert made.__code__.co_name == fn.__code__.co_name
    nested = inspect.CO_NESTED  # only says that there was a function around
    assert made.__code__.co_flags | nested == fn.__code__.co_flags | nested
    assert lines_of(made.__code__) == lines_of(fn.__code__)
    if sys.version_info >= (3, 11):
        assert made.__code__.co_qualname == fn.__code__.co_qualname
    for mine, users in zip(nested_codes(made.__code__), nested_codes(fn.__code__), strict=True):
        assert getattr(mine, "co_qualname", "") == getattr(users, "co_qualname", "")
    assert is_loaded_code(made.__code__)
    assert not is_loaded_code(fn.__code__)


def lines_of(code):
    return {line for _, _, line in code.co_lines()}


def nested_codes(code):
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield const
            yield from nested_codes(const)


def test_cells_are_shared():
    bump, read = sample.counter()
    made = reloaded(bump)
    assert made.__closure__ == bump.__closure__
    assert made.__closure__[0] is bump.__closure__[0]
    assert (made(), bump(), made(5), read()) == (1, 2, 7, 7)


def test_changed_body_uses_cells_and_extra():
    bump, read = sample.counter()
    node = parse(
        "def bump(by=0):\n    nonlocal n\n    def twice():\n        return tool(by) * 2\n    n += twice()\n    return n"
    ).body[0]
    made = load(bump, node, {"tool": lambda value: value + 1})
    assert made() == 4  # The default is the original's 1, not the 0 of the text.
    assert read() == 4


def test_recursion():
    assert reloaded(sample.recursive)(5) == 120
    assert "recursive" in reloaded(sample.recursive).__code__.co_names
    fact = sample.recursive_local()
    assert reloaded(fact)(5) == 120
    assert reloaded(fact).__closure__[0].cell_contents is fact


def test_methods():
    thing = sample.Outer.Inner()
    assert reloaded(sample.Outer.Inner.method)(thing) == (6, 1)
    made, secret = reloaded(sample.Outer.Inner.maker)(thing)
    assert made() == (6, sample.Outer.Inner)
    assert secret() == 6
    assert made.__qualname__ == "Outer.Inner.maker.<locals>.made"
    assert reloaded(made)() == (6, sample.Outer.Inner)
    assert reloaded(secret)() == 6
    outer = sample.Outer()
    assert reloaded(sample.Outer.uses_super)(outer) == outer.uses_super()
    assert reloaded(sample.Outer.value.fget)(outer) == 5
    assert asyncio.run(reloaded(sample.Outer.coroutine)(outer)) == 5
    bound = outer.uses_super
    assert reloaded(bound)(outer) == outer.uses_super()


def test_subclass_and_explicit_super():
    class Base:
        def who(self):
            return "base"

    class Derived(Base):
        def who(self):
            return "derived " + super().who()

    node = parse(
        "def who(self):\n    def inner():\n        return super(__class__, self).who()\n    return inner()"
    ).body[0]
    Derived.who = load(Derived.who, node, {})
    assert Derived().who() == "base"


def test_generator():
    assert list(reloaded(sample.squares)(4)) == [0, 1, 4, 9]


def test_signature_kinds():
    assert reloaded(sample.wide)(1, 2, 3, c=4, d=5, e=6) == (1, 2, (3,), 4, 5, {"e": 6})
    with pytest.raises(TypeError):
        reloaded(sample.wide)(a=1, b=2, d=3)


def test_lambda():
    made = reloaded(sample.pair[1])
    assert made(1) == 4
    assert made.__name__ == "<lambda>"
    assert load(sample.pair[0], parse("lambda x: tool(x)").body[0].value, {"tool": str})(3) == "3"


def test_lambda_replaced_by_def():
    node = parse("def placeholder(x):\n    y = x\n    return tool(y)").body[0]
    node.name = "<lambda>"
    made = load(sample.pair[0], node, {"tool": str})
    assert made(3) == "3"
    assert made.__code__.co_name == "<lambda>"


def test_mutable_default_is_shared():
    def grow(x, into=[]):
        into.append(x)
        return into

    made = reloaded(grow)
    assert made(1) is grow(2)


def test_decorators_are_not_applied_again():
    calls = []

    def note(fn):
        calls.append(fn)
        return fn

    @note
    def f():
        return 1

    assert reloaded(f)() == 1
    assert calls == [f]


def test_traceback_has_the_users_lines():
    made = reloaded(sample.Outer.Inner.method)
    with pytest.raises(AttributeError) as caught:
        made(object())
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.filename == sample.__file__
    assert frame.line == "return self.__secret, __p  # MARK method"
    assert frame.name == "method"


def test_future_imports_hold(tmp_path):
    module = load_module(
        tmp_path / "with_future.py",
        "from __future__ import annotations\ndef f():\n    def g(x: missing): pass\n    return g.__annotations__\n",
    )
    assert reloaded(module.f)() == {"x": "missing"}
    # This very test module has the import; the loaded function's module hasn't.
    module = load_module(
        tmp_path / "without_future.py", "def f():\n    def g(x: int): pass\n    return g.__annotations__\n"
    )
    assert reloaded(module.f)() == {"x": int}


def test_clashing_names():
    bump, _ = sample.counter()
    with pytest.raises(ValueError, match="n: already"):
        load(bump, find(bump).node, {"n": 1})


def test_empty_cell_stays_empty():
    def outer():
        def inner():
            return later

        made = reloaded(inner)
        with pytest.raises(NameError):
            made()
        later = 3
        return made()

    assert outer() == 3


def test_loaded_code_is_forgotten_and_nested_code_known():
    made = reloaded(sample.counter)
    bump, _ = made()
    assert is_loaded_code(bump.__code__)
    from autograph.syntax.load import _loaded

    gc.collect()
    before = len(_loaded)
    del made, bump
    gc.collect()
    assert len(_loaded) < before


def test_node_is_not_changed():
    node = find(sample.decorated).node
    load(sample.decorated, node, {})
    assert len(node.decorator_list) == 2
    assert load(sample.decorated, node, {})(1) == 11


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are Python 3.12 syntax")
def test_type_parameters(tmp_path):
    module = load_module(
        tmp_path / "generic.py",
        textwrap.dedent(
            """
            def f[T](x: T) -> list[T]:
                return T, x

            class A[S]:
                def m[U](self, x=1):
                    return S, U, self.__k, __class__
                _A__k = 7
            """
        ),
    )
    made = reloaded(module.f)
    assert made(1) == module.f(1)
    assert made.__type_params__ == module.f.__type_params__
    assert reloaded(module.A.m)(module.A()) == module.A().m()


class Ratio:
    """Its methods name their own class, a module variable, and private names at the same time."""

    __unit = 1

    def doubled(self):
        return Ratio(), self.__unit


def test_a_method_that_names_its_own_class():
    made = reloaded(Ratio.doubled)
    assert made.__code__.co_freevars == ()
    instance, unit = made(Ratio())
    assert (type(instance), unit) == (Ratio, 1)

    class Local:
        __unit = 2

        def doubled(self):
            return Local(), self.__unit

    made = reloaded(Local.doubled)
    assert made.__code__.co_freevars == ("Local",)
    instance, unit = made(Local())
    assert (type(instance), unit) == (Local, 2)

"""Syntax that newer Pythons have: converted functions do what Python does, also where they are staged."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import textwrap

import gast
import pytest

import autograph as ag
from autograph.syntax import parse


@pytest.fixture
def module_of(tmp_path):
    """Imports a module of the given text."""

    def load(text):
        path = tmp_path / "written.py"
        path.write_text("import autograph as ag\n" + textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location("written", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def since(minor):
    return pytest.mark.skipif(sys.version_info < (3, minor), reason=f"syntax of Python 3.{minor}")


TYPE_PARAMETERS = """
    @ag.function
    def magnitude[T: float, *Rest](x: T, *rest: *Rest) -> T:
        type Same = T
        result: T = x
        if x < 0:
            class Box[V]:
                content: V
                def get[U](self, by: U) -> V:
                    names = [each.__name__ for each in (T, V, U, Same.__value__)]
                    return -x * by if names == ["T", "V", "U", "T"] else x
            result = Box().get(1.0)
        return result

    @ag.function
    def doubled_to(x, limit):
        while x < limit:
            type Number = float
            def twice[T](v: T) -> T:
                u: Number = v
                return u + v
            x = twice(x)
        return x

    class Scaled[T]:
        def __init__(self, by: T):
            self.by = by

        @ag.function
        def of[U](self, x: U) -> T:
            known = (T, U)
            while x < 10.0:
                x = x * self.by
            return x

"""


@since(12)
def test_type_parameters(module_of):
    module = module_of(TYPE_PARAMETERS)
    assert [float(module.magnitude(ag.constant(x))) for x in (-3.0, 3.0)] == [3.0, 3.0]
    assert float(module.doubled_to(ag.constant(1.0), ag.constant(5.0))) == 8.0
    assert float(module.Scaled(3.0).of(ag.constant(2.0))) == 18.0
    made = ag.autograph.to_graph(module.magnitude.python_function)
    for each in (module.magnitude, made):
        assert each.__type_params__ == module.magnitude.python_function.__type_params__
        assert each.__annotations__ == module.magnitude.python_function.__annotations__
        assert inspect.signature(each) == inspect.signature(module.magnitude.python_function)
    with ag.GradientTape() as tape:
        x = ag.constant(-3.0)
        tape.watch(x)
        y = module.magnitude(x)
    assert float(tape.gradient(y, x)) == -1.0


@since(13)
def test_defaults_of_type_parameters(module_of):
    module = module_of("""
        @ag.function
        def f(x):
            def g[T = Missing, *Ts = *tuple[Missing], **P = [Missing]](v: T) -> T:
                return v if v > 0 else -v
            return g(x)
    """)
    assert float(module.f(ag.constant(-2.0))) == 2.0


@since(12)
def test_free_f_strings(module_of, capsys):
    module = module_of("""
        @ag.function
        def f(x, names):
            told = f"{names["a"]} {f"{names['a']}{"\\n"}"}{ {1: 2}[1]!r:>{names["width"]}}"
            if x > 0:
                print(f"{x + 1:.2f} {names["a"]}")
            return x, told
    """)
    _, told = module.f(ag.constant(1.0), {"a": "A", "width": 3})
    assert told.numpy() == b"A A\n  2"
    assert capsys.readouterr().out == "2.00 A\n"


TEMPLATES = """
    def render(template):
        return "".join(
            part if isinstance(part, str) else f"<{part.expression}|{part.value}|{part.conversion}|{part.format_spec}>"
            for part in template
        )

    def told(x, names):
        inner = t"{names["a"]}"
        return render(t"{x} {x if x > 0 else -x!s} { x+ 1 =} {names["a"]!r:>{names["width"]}} {{" t"{inner.values}")

    @ag.function
    def doubled(x):
        template = t"{x * 2.0:.1f}{x if x > 0 else -x}"
        return template.values[0] + template.values[1]
"""


@since(14)
def test_template_strings(module_of):
    module = module_of(TEMPLATES)
    names = {"a": "A", "width": 3}
    made = ag.autograph.to_graph(module.told)
    assert [made(x, names) for x in (2, -2)] == [module.told(x, names) for x in (2, -2)]
    assert [float(module.doubled(ag.constant(x))) for x in (2.0, -2.0)] == [6.0, -2.0]

    text = ag.autograph.to_code(module.told)
    converted = "{ag__.if_exp(x > 0, lambda: x, lambda: -x)!s}"
    assert (
        't\'{x} {ag__.if_exp(x > 0, lambda: x, lambda: -x)!s}  x+ 1 ={ x+ 1 !r} {names["a"]!r:>{names["width"]}}'
        in text
    )


@since(14)
def test_annotations_are_not_evaluated(module_of):
    from annotationlib import Format, get_annotations

    module = module_of("""
        evaluated = []

        def told(kind):
            evaluated.append(kind)
            return kind

        @ag.function
        def f(x: told(Later), y: told(Later) = 2.0) -> "Text" | None:
            z: Nowhere = x * y
            if z > 0:
                def inner(v: Nowhere) -> Nowhere:
                    return -v if v > 0 else v
                z = inner(z)
            return z

        class Model(ag.Module):
            @ag.function
            def __call__(self, x: Later) -> Later:
                return x if x > 0 else -x
    """)
    assert float(module.f(ag.constant(3.0))) == -6.0
    assert float(module.f(y=ag.constant(-3.0), x=2.0)) == -6.0
    with pytest.raises(TypeError, match="missing a required argument: 'x'; its parameters are"):
        module.f()
    assert module.evaluated == []
    model = module.Model()
    assert float(model(ag.constant(-3.0))) == 3.0
    called = type(model).__call__
    made = ag.autograph.to_graph(called.python_function)
    for each in (called, model.__call__, made):
        with pytest.raises(NameError, match="Later"):
            each.__annotations__
        assert get_annotations(each, format=Format.STRING) == {"x": "Later", "return": "Later"}
        assert get_annotations(each, format=Format.FORWARDREF)["x"].__arg__ == "Later"
    assert list(inspect.signature(model.__call__).parameters) == ["x"]
    module.Later = int
    for each in (called, model.__call__, made):
        assert each.__annotations__ == inspect.get_annotations(each) == {"x": int, "return": int}
    assert inspect.signature(model.__call__).return_annotation is int


@since(14)
def test_annotations_of_classes_are_not_evaluated(module_of):
    module = module_of("""
        import dataclasses
        import typing

        class Tree(ag.experimental.ExtensionType):
            value: ag.Tensor
            children: tuple[Tree, ...] = ()
            mark: Mark | None = None

            def total(self, other: Nowhere) -> Tree:
                return self.value + self.children[0].value

        class Mark(ag.experimental.ExtensionType):
            weight: ag.Tensor

        @dataclasses.dataclass
        class Point:
            x: Nowhere

        class Pair(typing.NamedTuple):
            x: Nowhere

        class Model(ag.Module):
            weight: Nowhere
            def __init__(self):
                self.weight = ag.Variable(2.0)

        @ag.function
        def magnitude(holder):
            if holder.x < 0.0:
                holder = type(holder)(-holder.x)
            return holder
    """)
    leaf = module.Tree(2.0)
    tree = module.Tree(1.0, (leaf,), module.Mark(3.0))
    assert float(ag.function(lambda tree: tree.total(None) * tree.mark.weight)(tree)) == 9.0
    assert [float(module.magnitude(kind(ag.constant(-2.0))).x) for kind in (module.Point, module.Pair)] == [2.0, 2.0]
    assert [float(each) for each in module.Model().trainable_variables] == [2.0]


def annotated(x: int) -> float:
    return x


def test_assigned_annotations():
    annotated.__annotations__ = {"x": str}
    for each in (ag.function(annotated), ag.autograph.to_graph(annotated)):
        assert each.__annotations__ == {"x": str}


@since(14)
def test_except_without_parentheses(module_of):
    module = module_of("""
        @ag.function
        def f(x, error):
            try:
                if x > 0:
                    x = x + 1.0
                raise error
            except ValueError, KeyError:
                x = x * 2.0
            except TypeError:
                x = x * 3.0
            return x

        def in_groups(error):
            try:
                raise ExceptionGroup("both", [error])
            except* ValueError, KeyError:
                return_value = 1
            except* TypeError:
                return_value = 2
            return return_value
    """)
    errors = (ValueError, KeyError, TypeError)
    assert [float(module.f(ag.constant(1.0), each)) for each in errors] == [4.0, 4.0, 6.0]
    assert [ag.autograph.to_graph(module.in_groups)(each()) for each in errors] == [1, 1, 2]


UNPACKING = """
    def python(lists, tables):
        return (
            [*each for each in lists if each],
            {*each for each in lists},
            {**each for each in tables},
            list((*each for each in lists)),
            [*(-x if x > 1 else x for x in each) for each in lists],
            [*each for each in lists if (count := len(each)) or count],
        )

    @ag.function
    def of_lists(rows):
        return ag.stack([*[row, row * 2.0] for row in rows if row > 1.0])

    @ag.function
    def of_tensors(rows):
        return ag.stack([*row for row in rows])

    @ag.function
    def of_staged_lists(row, count):
        some = [row[i] for i in ag.range(count)]
        return ag.stack([*some for _ in ag.range(count)])

    @ag.function
    def total(rows):
        return sum((*[row, row * row] for row in rows if row > 1.0))
"""


@since(15)
def test_unpacking_in_comprehensions(module_of):
    module = module_of(UNPACKING)
    arguments = [[1, 2], [], [3]], [{1: 2}, {3: 4, 1: 5}]
    assert ag.autograph.to_graph(module.python)(*arguments) == module.python(*arguments)
    row = ag.constant([1.0, 2.0, 3.0])
    assert module.of_lists(row).numpy().tolist() == [2.0, 4.0, 3.0, 6.0]
    assert module.of_tensors(ag.constant([[1.0, 2.0], [3.0, 4.0]])).numpy().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert module.of_staged_lists(row, ag.constant(2)).numpy().tolist() == [1.0, 2.0, 1.0, 2.0]
    with ag.GradientTape() as tape:
        tape.watch(row)
        total = module.total(row)
    assert float(total) == 18.0
    assert tape.gradient(total, row).numpy().tolist() == [0.0, 5.0, 7.0]


@since(15)
def test_frozen_dictionaries(module_of):
    module = module_of("""
        @ag.function
        def f(given, x):
            made = frozendict(a=x * 2.0, b=given["a"])
            if x > 0:
                made = frozendict(a=x, b=x)
            while made["a"] < 4.0:
                made = made | {"a": made["a"] + 2.0}
            return made
    """)
    given = frozendict(a=ag.constant(7.0), c=3)
    for x, expected in [(1.0, {"a": 5.0, "b": 1.0}), (-2.0, {"a": 4.0, "b": 7.0})]:
        made = module.f(given, ag.constant(x))
        assert type(made) is frozendict
        assert {key: float(value) for key, value in made.items()} == expected


@since(15)
def test_sentinels_and_lazy_imports(module_of):
    module = module_of("""
        lazy import colorsys
        lazy from fractions import Fraction

        MISSING = sentinel("MISSING")

        @ag.function
        def f(x, by=MISSING):
            if by is MISSING:
                return x + float(Fraction(1, 2))
            while x < by:
                x = x * 2.0 + colorsys.ONE_THIRD
            return x
    """)
    assert [float(module.f(ag.constant(1.0))) for _ in range(2)] == [1.5, 1.5]
    assert module.f.experimental_get_tracing_count() == 1
    assert float(module.f(ag.constant(1.0), ag.constant(2.0))) == pytest.approx(7 / 3)


@pytest.mark.parametrize("decorate", [ag.function, ag.autograph.to_graph, ag.autograph.to_code])
def test_syntax_that_gast_lacks_is_refused(monkeypatch, decorate):
    def choose(x):
        return x in {1, 2}

    monkeypatch.delattr(gast, "Set")
    monkeypatch.setattr(parse, "_FromPython", parse._quick(gast.ast3.Ast3ToGAst, gast))
    parse.unknown_nodes.cache_clear()
    try:
        with pytest.raises(ag.errors.ConversionError, match="express a Set") as caught:
            decorate(choose)
    finally:
        parse.unknown_nodes.cache_clear()
    text = str(caught.value)
    assert "test_syntax_that_gast_lacks_is_refused.<locals>.choose can't be converted" in text
    assert f"test_new_syntax.py:{choose.__code__.co_firstlineno + 1}, in choose" in text
    assert "fix: install a newer version of gast" in text


def test_gast_has_all_syntax_of_this_python():
    assert parse.unknown_nodes() == frozenset()


FINALLY = """
    def returns(x):
        try:
            raise ValueError
        finally:
            return x if x is not 1 else -x

    def leaves(x):
        for i in range(3):
            try:
                if x > 0:
                    x = x * 2.0
                inverse = 1 / i
            finally:
                x = x - 1.0
                if i == 1:
                    break
                else:
                    continue
        return x
"""


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_jumps_out_of_finally(module_of, recwarn):
    module = module_of(FINALLY)
    recwarn.clear()
    for python in (module.returns, module.leaves):
        assert [ag.autograph.to_graph(python)(x) for x in (0.0, 1, 5.0)] == [python(x) for x in (0.0, 1, 5.0)]
        assert [float(ag.function(python)(ag.constant(x))) for x in (0.0, 5.0)] == [python(x) for x in (0.0, 5.0)]
        ag.autograph.to_code(python)
    assert recwarn.list == []

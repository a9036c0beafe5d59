"""Finding source: every kind of function, its place in the file, several lambdas on a line, text that changed."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import linecache
import os
import sys
import textwrap
import types

import gast
import pytest

from autograph.syntax.compiled import class_of, compile_like, same_code
from autograph.syntax.parse import to_ast
from autograph.syntax.source import SourceUnavailable, find, give_back

from . import sample


def functions_in(module):
    """All functions and lambdas that can be reached from a module's names, classes and calls of makers."""
    found = []

    def add(value):
        if isinstance(value, types.FunctionType):
            found.append(value)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for each in vars(value).values():
                add(each)
        elif isinstance(value, property):
            add(value.fget)
        elif isinstance(value, staticmethod):
            add(value.__func__)
        elif isinstance(value, (tuple, list)):
            for each in value:
                add(each)

    for value in list(vars(module).values()):
        add(value)
    add(sample.counter())
    add(sample.recursive_local())
    add(sample.closing(2))
    add(sample.nested(1))
    add(sample.nested(1)(2))
    add(sample.text_at_margin()[1])
    add(sample.Outer.Inner().maker())
    add(sample.inside.__wrapped__)
    return found


FUNCTIONS = functions_in(sample)


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: f"{fn.__qualname__}:{fn.__code__.co_firstlineno}")
def test_found_node_compiles_to_the_same_code(fn):
    source = find(fn)
    code = compile_like(to_ast(source.node), fn, source.class_name, imported=["functools"])
    assert same_code(code, fn.__code__)
    assert source.filename == sample.__file__
    assert source.module == sample.__name__
    if not isinstance(source.node, gast.Lambda):
        assert source.node.name == fn.__code__.co_name
        assert source.line(source.node.lineno).lstrip().startswith(("def", "async def"))
        assert source.line(source.node.end_lineno).strip()
        mark = f"# MARK {source.node.name}\n"
        if mark in source.text:
            assert mark in source.line(source.node.end_lineno)


def test_enough_functions_are_tried():
    assert len(FUNCTIONS) > 50


def test_positions_are_the_files():
    node = find(sample.Outer.Inner.method).node
    with open(sample.__file__, encoding="utf-8") as handle:
        lines = handle.read().splitlines()
    returned = node.body[0]
    line = lines[returned.lineno - 1]
    assert line[returned.col_offset : returned.end_col_offset] == "return self.__secret, __p"


def test_lambdas_on_a_line():
    bodies = [ast.unparse(to_ast(find(fn).node)) for fn in sample.pair]
    assert bodies == ["lambda x: x + 2", "lambda x: x + 3", "lambda y: y + 3"]
    constants = [find(fn).node.body.value for fn in sample.constants]
    assert constants == [1, 2, "é", 3, 4, 5]
    assert find(sample.spread).node.end_lineno == find(sample.spread).node.lineno + 1


def test_decorators_stay_on():
    assert len(find(sample.decorated).node.decorator_list) == 2
    assert find(sample.decorated).text.startswith("@keep\n@keep_with(")


def test_class_names():
    bound = sample.Outer.Inner()
    made, secret = bound.maker()
    assert find(bound.method).class_name == "Inner"
    assert find(made).class_name == find(secret).class_name == "Inner"
    assert find(sample.Outer.uses_super).class_name == "Outer"
    assert find(sample.plain).class_name is None
    assert find(sample.counter()[0]).class_name is None
    assert class_of(sample.inside) is None


def test_each_find_gives_a_new_tree():
    assert find(sample.plain).node is not find(sample.plain).node
    assert find(sample.one).node is not find(sample.one).node


def test_a_tree_given_back_is_found_once():
    read = find(sample.plain)
    give_back(sample.plain, read)
    assert find(sample.plain).node is read.node
    assert find(sample.plain).node is not read.node


def test_a_tree_given_back_is_not_found_in_a_changed_file(tmp_path):
    path = tmp_path / "changing.py"
    module = load_module(path, BEFORE)
    give_back(module.f, find(module.f))
    path.write_text("\n" + BEFORE, encoding="utf-8")
    later = os.stat(path).st_mtime + 5
    os.utime(path, (later, later))
    with pytest.raises(SourceUnavailable):
        find(module.f)


def test_wrapper_is_not_unwrapped():
    assert find(sample.inside).node.name == "wrapper"
    assert find(sample.inside.__wrapped__).node.name == "inside"


@pytest.mark.parametrize("value", [len, 3, int, "text".upper])
def test_not_python(value):
    with pytest.raises(SourceUnavailable, match="not a Python function"):
        find(value)


def test_exec_without_text():
    space = {}
    # From Python 3.13 on, `python -c` registers its own text as that of "<string>".
    exec(compile("def f(): return 1", "<made>", "exec"), space)
    with pytest.raises(SourceUnavailable, match="linecache"):
        find(space["f"])


def test_cell_through_linecache():
    text = "def f(x):\n    return x\n\ng = lambda x: x\n"
    name = "<cell 1>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    assert find(space["f"]).node.name == "f"
    assert isinstance(find(space["g"]).node, gast.Lambda)
    assert find(space["f"]).lines == text.splitlines(True)
    # The cell is run again with another text under the same name.
    linecache.cache[name] = (4, None, ["x = 1\n"], name)
    for key in "fg":
        with pytest.raises(SourceUnavailable, match="changed"):
            find(space[key])


def load_module(path, text):
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BEFORE = """
def f(x):
    return x + 1

g = lambda x: x + 1
import math, os.path as p
if math: from math import pi as half_turn
def h(x): return math.sqrt(p.join(half_turn.real(), str(x).lower()))
"""


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("+ 1", "+ 2"),
        BEFORE.replace("x + 1", "y + 1").replace("x:", "y:").replace("(x)", "(y)"),
        "\n" + BEFORE,
        "x = 1\n",
        BEFORE.replace("def f(x):", "def f(x:").replace("lambda", "lamda"),
    ],
    ids=["constant", "parameter", "moved", "short", "broken"],
)
def test_changed_file(tmp_path, after):
    path = tmp_path / "changing.py"
    module = load_module(path, BEFORE)
    assert find(module.f).node.name == "f"
    path.write_text(after, encoding="utf-8")
    later = os.stat(path).st_mtime + 5
    os.utime(path, (later, later))
    for fn in (module.f, module.g):
        with pytest.raises(SourceUnavailable):
            find(fn)


def test_unchanged_function_of_a_changed_file(tmp_path):
    path = tmp_path / "growing.py"
    module = load_module(path, BEFORE)
    path.write_text(BEFORE + "\nmore = 1\n", encoding="utf-8")
    later = os.stat(path).st_mtime + 5
    os.utime(path, (later, later))
    assert find(module.f).node.name == "f"
    assert find(module.h).node.name == "h"


def test_long_text_at_the_margin(tmp_path):
    body = "".join(f"line {number}\n" for number in range(100))
    module = load_module(tmp_path / "long.py", f'def f():\n    """\n{body}"""\n    return 1\n\ndef g(): pass\n')
    assert find(module.f).node.end_lineno == 104


def test_missing_file(tmp_path):
    path = tmp_path / "gone.py"
    module = load_module(path, BEFORE)
    path.unlink()
    linecache.clearcache()
    with pytest.raises(SourceUnavailable, match="missing"):
        find(module.f)


def test_no_warning_of_escapes_twice(tmp_path, recwarn):
    module = load_module(tmp_path / "escapes.py", "def f():\n    return '\\\\d'\n\ng = lambda: r'\\d'\n")
    recwarn.clear()
    find(module.f)
    find(module.g)
    assert not recwarn.list


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are Python 3.12 syntax")
def test_type_parameters(tmp_path):
    module = load_module(
        tmp_path / "generic.py", "class A[T]:\n    def f[U](self, x: U) -> T:\n        return U, self.__p\n"
    )
    source = find(module.A.f)
    assert source.class_name == "A"
    assert source.node.name == "f"
    assert same_code(compile_like(to_ast(source.node), module.A.f, "A"), module.A.f.__code__)


SURROUNDED = '''
TEXT = """
def looks_like_code(x):
    no end"""
if TEXT:
    first = lambda x: x + 1
else:
    other = lambda x: x + 2
if not TEXT:
    pass
else:
    second = lambda x: x * 3
third = [
    lambda x: x + 4,
    """
def in_a_string(x):
""",
    lambda x: x + 5,
]
def make(
    x,
):
    return lambda y: (
        x + y
    )
fourth = make(1)
class Holder:
    fifth = lambda self: self
'''


def test_lambdas_are_found_by_the_statement_around_them_or_by_the_whole_file(tmp_path):
    module = load_module(tmp_path / "surrounded.py", SURROUNDED)
    lambdas = [module.first, module.second, module.third[0], module.third[2], module.fourth, module.Holder.fifth]
    bodies = [ast.unparse(to_ast(find(each).node.body)) for each in lambdas]
    assert bodies == ["x + 1", "x * 3", "x + 4", "x + 5", "x + y", "self"]
    places = [find(each).node.lineno for each in lambdas]
    assert places == [each.__code__.co_firstlineno for each in lambdas]
    unparsed = [find(each).text.count("\n") for each in lambdas]
    assert unparsed == [1, 1, 1, 1, 3, 1]

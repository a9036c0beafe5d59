"""Converts the functions of modules in place: every function object keeps its identity and gets converted code.

So whoever holds a function (a class, a property, a decorator, a table, a closure) runs the converted form of it.
"""

from __future__ import annotations

import builtins
import gc
from types import FunctionType

from autograph import operators
from autograph.convert.boundary import bound
from autograph.convert.context import OPERATORS
from autograph.convert.pipeline import convert_tree
from autograph.syntax.load import is_loaded_code, load
from autograph.syntax.source import SourceUnavailable, find


def convert_modules(names):
    """Converts every function and method of the modules that are imported under these names, old copies too.

    Returns the number of functions converted, and what has no source (functions that the module made by ``exec``).
    """
    # Not among the names of the modules, which some tests go through.
    setattr(builtins, OPERATORS, operators)
    made: dict = {}
    converted, sourceless = 0, []
    for function in gc.get_objects():
        if type(function) is not FunctionType or function.__globals__.get("__name__") not in names:
            continue
        code = function.__code__
        if is_loaded_code(code):
            continue
        if id(code) not in made:
            try:
                made[id(code)] = (code, _converted_code(function))
            except SourceUnavailable:
                made[id(code)] = (code, None)
                sourceless.append(function.__qualname__)
        _, new = made[id(code)]
        if new is not None:
            function.__code__ = new
            converted += 1
    return converted, sorted(sourceless)


def _converted_code(function):
    source = find(function)
    names = {*function.__globals__, *function.__code__.co_freevars}
    shadowed = frozenset(names.intersection(vars(builtins)))
    tree = convert_tree(source.node, filename=source.filename, class_name=source.class_name, shadowed=shadowed)
    code = load(function, tree, {}, source.class_name, bound(tree)).__code__
    assert code.co_freevars == function.__code__.co_freevars, function
    return code

"""The examples in the modules' docstrings say what happens."""

from __future__ import annotations

import ast
import doctest
import importlib

import pytest

from autograph.syntax.parse import parse, to_ast

MODULES = ["names", "scopes", "effects", "cfg", "liveness", "parse", "unparse", "expressions", "literals"]


@pytest.mark.parametrize("name", MODULES)
def test_docstring(name):
    module = importlib.import_module(f"autograph.syntax.{name}")
    names = {**vars(module), "parse": parse, "to_ast": to_ast, "ast": ast}
    examples = doctest.DocTestParser().get_doctest(module.__doc__, names, name, module.__file__, 0)
    assert examples.examples
    result = doctest.DocTestRunner(verbose=False).run(examples)
    assert result.failed == 0

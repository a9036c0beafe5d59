"""The converted text of each construct is what tests/golden says; ``pytest --update-golden`` rewrites it."""

from __future__ import annotations

import ast
import contextlib

import pytest

from autograph import operators
from autograph.convert.pipeline import convert_tree
from autograph.syntax.parse import parse
from autograph.syntax.unparse import unparse
from tests.convert import golden

CASES = golden.all_cases()


def convert_text(source):
    return unparse(convert_tree(parse(source).body[0])).strip("\n") + "\n"


def test_names_are_unique():
    names = [case.name for case in CASES]
    assert sorted(names) == sorted(set(names))
    assert len(names) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case, request):
    converted = convert_text(case.source)
    ast.parse(converted)
    golden.compare(case, converted, request)


def test_text_after_each_pass_is_python():
    for case in CASES:
        seen = []

        def check(name, tree, seen=seen):
            ast.parse(unparse(tree))
            seen.append(name)

        convert_tree(parse(case.source).body[0], after_pass=check)
        assert seen[0] == "super"
        assert seen[-1] == "comprehension"


NESTING = [case for case in CASES if case.path.stem == "nesting"]


@pytest.mark.parametrize("case", NESTING, ids=lambda case: case.name)
def test_nested_constructs_do_the_same(case):
    """Jumps out of every construct in every loop: the converted text does what the source does."""
    found = []
    for text in (case.source, convert_text(case.source)):
        namespace = {"scope": contextlib.nullcontext, "ag__": operators}
        exec(text, namespace)
        found.append([outcome(namespace["f"], xs, n) for xs in ([], [1, 2], [2, 0, 4], [1, 3, 2]) for n in range(5)])
    assert found[0] == found[1]


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except ZeroDivisionError as error:
        return str(error)

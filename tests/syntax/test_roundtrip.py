"""Text to tree to text to tree, on the standard library of the running Python.

By default every third file, in a fixed order; ``AUTOGRAPH_ALL_STDLIB=1`` takes all of them.
"""

from __future__ import annotations

import ast
import os
import sysconfig

import pytest

from autograph.syntax.parse import from_ast, to_ast
from autograph.syntax.unparse import unparse
from runtime.python_text import python_ast

EVERYTHING = os.environ.get("AUTOGRAPH_ALL_STDLIB") == "1"
PARTS = 8


def stdlib_files():
    root = sysconfig.get_paths()["stdlib"]
    found = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(set(subfolders) - {"site-packages", "__pycache__"})
        found += [os.path.join(folder, file) for file in sorted(files) if file.endswith(".py")]
    return found if EVERYTHING else found[::3]


def parsed(text):
    """The tree, or None for text that Python itself rejects (the standard library's tests hold some)."""
    try:
        return python_ast(text)
    except (SyntaxError, ValueError):
        return None


@pytest.mark.parametrize("part", range(PARTS))
def test_standard_library(part):
    files = stdlib_files()
    assert len(files) > 100  # some systems package the library's tests apart
    done = 0
    failed = []
    for file in files[part::PARTS]:
        with open(file, "rb") as handle:
            tree = parsed(handle.read())
        if tree is None:
            continue
        text = unparse(from_ast(tree))
        again = parsed(text)
        if again is None or ast.dump(again) != ast.dump(tree):
            failed.append(file)
        assert ast.dump(to_ast(from_ast(tree))) == ast.dump(tree), file
        done += 1
    assert not failed
    assert done > 10

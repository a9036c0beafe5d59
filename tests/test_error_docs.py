"""docs/errors.md: it has an entry for every error, its examples raise what they say, and the fixes work."""

from __future__ import annotations

import inspect
import linecache
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import autograph as ag

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "errors.md").read_text(encoding="utf-8")
ENTRIES = {
    title: re.findall(r"```python\n(.*?)```", body, re.DOTALL)
    for title, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
}
ERRORS = {
    name: value
    # `ag.errors` is the public namespace, which hides the module.
    for module in (import_module("runtime.errors"), import_module("autograph.errors"))
    for name, value in vars(module).items()
    if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__ == module.__name__
}
BASES = {"AutographError", "OpError"}
WITHOUT_EXAMPLES = "InternalError, KernelError, CompilationWarning"


def run(text, name):
    filename = f"<docs/errors.md {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), {"ag": ag, "np": np, "__name__": "example"})


def test_every_error_has_an_entry():
    titles = {name for title in ENTRIES for name in title.split(", ")}
    warnings = {name for name, error in ERRORS.items() if issubclass(error, Warning)}
    assert set(ERRORS) - BASES - warnings <= titles <= set(ERRORS)
    assert ENTRIES[WITHOUT_EXAMPLES] == []


@pytest.mark.parametrize("title", [title for title in ENTRIES if title != WITHOUT_EXAMPLES])
def test_example_and_fix(title):
    wrong, right = ENTRIES[title]
    with pytest.raises(ERRORS[title]) as caught:
        run(wrong, f"{title} example")
    assert type(caught.value) is ERRORS[title]
    run(right, f"{title} fix")

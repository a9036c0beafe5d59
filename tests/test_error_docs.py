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
WITHOUT_EXAMPLES = {"InternalError, KernelError, CompilationWarning", "CacheWarning, UnconvertedWarning"}
# An entry of several errors has one example, in which {name} stands for each.
EXAMPLES = [(name, title) for title in ENTRIES if title not in WITHOUT_EXAMPLES for name in title.split(", ")]


def run(text, name):
    filename = f"<docs/errors.md {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), {"ag": ag, "np": np, "__name__": "example"})


def test_every_error_has_an_entry():
    titles = {name for title in ENTRIES for name in title.split(", ")}
    assert set(ERRORS) - BASES == titles
    assert all(ENTRIES[title] == [] for title in WITHOUT_EXAMPLES)


@pytest.mark.parametrize(("name", "title"), EXAMPLES)
def test_example_and_fix(name, title):
    wrong, right = (text.replace("{name}", name) for text in ENTRIES[title])
    with pytest.raises(ERRORS[name]) as caught:
        run(wrong, f"{name} example")
    assert type(caught.value) is ERRORS[name]
    run(right, f"{name} fix")

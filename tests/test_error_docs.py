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
# Python's own, which carry a cause and a fix.
PYTHONS = {"TypeError": TypeError, "ValueError": ValueError, "AttributeError": AttributeError}
BASES = {"AutographError", "OpError"}
WITHOUT_EXAMPLES = {
    "InternalError, KernelError, CompilationWarning",
    "CacheWarning, UnconvertedWarning",
    "PerformanceWarning, RetracingWarning",
}


def _with_name(example: str, title: str, name: str) -> str:
    names = "|".join(title.split(", "))
    return re.sub(rf"\bag\.errors\.(?:{names})\b", f"ag.errors.{name}", example)


# Blocks come in pairs, an example and its fix. The examples of an entry of several errors show one of them, and are run
# for each.
EXAMPLES = [
    pytest.param(name, _with_name(wrong, title, name), _with_name(right, title, name), id=f"{name}-{number}")
    for title, examples in ENTRIES.items()
    if title not in WITHOUT_EXAMPLES
    for number, (wrong, right) in enumerate(zip(examples[::2], examples[1::2], strict=True))
    for name in title.split(", ")
]


def run(text, name):
    filename = f"<docs/errors.md {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), {"ag": ag, "np": np, "__name__": "example"})


def test_every_error_has_an_entry():
    titles = {name for title in ENTRIES for name in title.split(", ")}
    assert set(ERRORS) - BASES == titles - PYTHONS.keys() and titles >= PYTHONS.keys()
    assert all((ENTRIES[title] == []) == (title in WITHOUT_EXAMPLES) for title in ENTRIES)


@pytest.mark.parametrize(("name", "wrong", "right"), EXAMPLES)
def test_example_and_fix(name, wrong, right):
    error = {**ERRORS, **PYTHONS}[name]
    with pytest.raises(error) as caught:
        run(wrong, f"{name} example")
    found = type(caught.value)
    assert (found.__module__, found.__qualname__) == (error.__module__, error.__qualname__), "what a traceback shows"
    run(right, f"{name} fix")

"""Docstrings of the public names: each has one, with an example that runs and prints what it says.

`LACKING` lists the names that have no example yet. It may only shrink.
"""

import builtins
import doctest
import functools
import inspect
import math
import re

import pytest

import autograph as ag
from autograph.documentation import examples
from docs.api_pages import sections

LACKING: set[str] = set()


def public():
    """Each public function and class of ours once, by its first name. Errors have examples in docs/errors.md."""
    found = {}
    for _, names in sections():
        for name, value in names.items():
            is_error = inspect.isclass(value) and issubclass(value, BaseException)
            is_numpys = getattr(value, "__module__", "") == "numpy"  # its scalar types, which have its docstrings
            if (
                callable(value)
                and not is_error
                and not is_numpys
                and not any(value is other for other in found.values())
            ):
                found[name] = value
    return found


PUBLIC = public()


NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


class Checker(doctest.OutputChecker):
    """Numbers may differ in their last digits, and so in length: kernels differ from one processor to the next."""

    def check_output(self, want, got, optionflags):
        expected, found = self.plain(want), self.plain(got)
        if NUMBER.sub("#", expected) != NUMBER.sub("#", found):
            return False
        pairs = zip(NUMBER.findall(expected), NUMBER.findall(found))
        return all(math.isclose(float(x), float(y), rel_tol=1e-5, abs_tol=1e-7) for x, y in pairs)

    @staticmethod
    def plain(text):
        text = re.sub(r"np\.(?:float|int)\d+\(([^()]*)\)", r"\1", text)  # as NumPy 2 shows scalars
        return re.sub(r"\s+(?=[\],)])|(?<=[\[(])\s+", "", " ".join(text.split()))


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if ">>>" in (value.__doc__ or "")])
def test_the_example_prints_what_it_says(name, request):
    value = PUBLIC[name]
    if name.startswith("compat."):
        request.getfixturevalue("no_facade")
    # The docstrings of `runtime` know no `ag`: they name what they use directly.
    leaves = {n.rpartition(".")[2]: each for n, each in reversed(PUBLIC.items())}
    space = {**{n: each for n, each in leaves.items() if n not in dir(builtins)}, "ag": ag, "dtypes": ag.dtypes}
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(value), space, name, None, None)
    ag.random.set_seed(None)  # whatever was run before
    lines = []
    doctest.DocTestRunner(Checker(), verbose=False).run(test, out=lines.append)
    assert not lines, "".join(lines)
    assert test.examples


@pytest.mark.parametrize("name", PUBLIC)
def test_there_is_a_docstring(name):
    assert len((PUBLIC[name].__doc__ or "").strip()) > 10


def test_names_without_an_example_are_known():
    without = {name for name, value in PUBLIC.items() if ">>>" not in (value.__doc__ or "")}
    assert not without - LACKING, "give each an example: `echo 'NAME: ag.NAME(...)' | python -m docs.make_examples`"
    assert without >= LACKING & set(PUBLIC), f"take off the list: {sorted(LACKING & set(PUBLIC) - without)}"


def test_each_example_is_of_a_public_name():
    for name in examples():
        assert callable(functools.reduce(getattr, name.split("."), ag))

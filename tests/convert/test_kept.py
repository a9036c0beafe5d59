"""Converted functions of installed libraries are kept on disk: another process, or another load, converts none."""

import importlib
import os
import subprocess
import sys
import textwrap
import traceback

import pytest

import autograph as ag
from autograph.convert import api
from runtime.codegen.cache import kernel_cache

LIBRARY = '''
limit = 10.0


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        while x < limit:
            x = x * self.factor
        return x


def sign(x):
    """The sign."""
    if x > 0:
        return 1.0
    return sum([-1.0]) if x < 0 else helper(x)


def helper(x, *, by=2):
    if by == 7:
        raise ValueError(f"no {by}")
    return max(x, 0.0) * by
'''


@pytest.fixture
def library(tmp_path, monkeypatch):
    """What imports the library anew, with a text of its own, in a place for installed libraries."""
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    place = tmp_path / "site-packages"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    path = place / "a_library_of_tests.py"

    def load(text=LIBRARY):
        path.write_text(text)
        sys.modules.pop(path.stem, None)
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        return importlib.import_module(path.stem)

    yield load
    sys.modules.pop(path.stem, None)


@pytest.fixture
def conversions(monkeypatch):
    """The names of the library's functions that are converted, not read."""
    names = []
    convert = api._convert

    def counted(source, *rest):
        if source.filename.endswith("a_library_of_tests.py"):
            names.append(source.node.name)
        return convert(source, *rest)

    monkeypatch.setattr(api, "_convert", counted)
    return names


def run(module):
    scale = module.Scale(3.0)

    @ag.function
    def f(x):
        return scale(x), module.sign(x)

    return [[float(part) for part in f(ag.constant(x))] for x in (1.0, 12.0)]


def test_another_load_converts_nothing(library, conversions):
    first = run(library())
    assert sorted(conversions) == ["__call__", "helper", "sign"]
    assert len(list(kernel_cache.kernel_folder().glob("f_*.function"))) == 3
    conversions.clear()
    assert run(library()) == first == [[27.0, 1.0], [12.0, 1.0]]
    assert conversions == []


def test_what_has_changed_is_converted_anew(library, conversions):
    run(library())
    conversions.clear()
    changed = run(library(LIBRARY.replace("return 1.0", "return 2.0")))
    assert changed[0] == [27.0, 2.0] and conversions == ["sign"]
    conversions.clear()
    # The same functions, but a name means something else where they stand.
    run(library(LIBRARY + "\n\ndef max(x, y):\n    return x if x > y else y\n"))
    assert sorted(conversions) == ["__call__", "helper", "max", "sign"]
    conversions.clear()
    for path in kernel_cache.kernel_folder().glob("f_*.function"):
        path.write_bytes(path.read_bytes()[:-3])
    with_damage = run(library())
    assert with_damage[0] == [27.0, 1.0] and sorted(conversions) == ["__call__", "helper", "sign"]


def test_errors_show_the_librarys_lines(library):
    for _ in range(2):
        module = library()

        @ag.function
        def f(x, by):
            return module.helper(x, by=by)

        with pytest.raises(ValueError, match="no 7") as caught:
            f(ag.constant(2.0), 7)
        last = traceback.extract_tb(caught.tb)[-1]
        assert last.filename.endswith("a_library_of_tests.py") and last.line == 'raise ValueError(f"no {by}")'
        assert last.name == "helper"
        assert float(f(ag.constant(2.0), 3)) == 6.0


def test_the_users_functions_are_not_kept(library):
    @ag.function
    def f(x):
        if x > 0:
            return x
        return -x

    assert float(f(ag.constant(-1.0))) == 1.0
    assert not list(kernel_cache.kernel_folder().glob("f_*"))


def test_another_process_converts_nothing(library, tmp_path):
    library()
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import autograph as ag, a_library_of_tests
        from autograph.convert import api

        converted, convert = [], api._convert
        api._convert = lambda source, *rest: converted.append(source.node.name) or convert(source, *rest)
        f = ag.function(lambda x: a_library_of_tests.sign(x))
        print(float(f(ag.constant(2.0))), [name for name in converted if name != "<lambda>"])
        """).replace("source.node.name", "getattr(source.node, 'name', '<lambda>')")
    )
    places = [str(tmp_path / "site-packages"), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, str(program)]
    outputs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert outputs == ["1.0 ['sign', 'helper']\n", "1.0 []\n"]

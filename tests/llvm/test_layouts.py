"""Machine code reads objects where their fields were found, and asks the C API where they weren't."""

import ast
import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path
from types import CellType

import numpy as np
import pytest

from runtime.interpreter import IS_FREE_THREADED
from runtime.llvm import layouts, python_objects
from runtime.tensor import EagerTensor

ROOT = Path(layouts.__file__).parents[2]

PROGRAM = Path(__file__).with_name("layout_program.py")


def printed(unknown: str) -> str:
    """What the program prints while these kinds of objects have no known layout."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), layouts.VARIABLE: unknown}
    run = subprocess.run([sys.executable, PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def expected() -> str:
    return printed("")


@pytest.mark.parametrize("kind", [*layouts.KINDS, "tuple, array", "all"])
def test_programs_run_without_a_layout(kind, expected):
    assert expected.count("\n") == 20
    assert printed(kind) == expected


COUNTED = """
import autograph as ag
from runtime.engine import kernel_counters
f = ag.function(lambda x: x * 2.0 + x, jit_compile=True)
print(f(ag.constant(3.0)).numpy(), kernel_counters().compiled)
"""


def test_kernels_on_disk_belong_to_the_layouts_they_were_compiled_for(tmp_path):
    def run(unknown: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), layouts.VARIABLE: unknown}
        environment["AUTOGRAPH_CACHE_DIR"] = str(tmp_path)
        done = subprocess.run(
            [sys.executable, "-c", COUNTED], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert [run(unknown) for unknown in ("", "", "all", "all", "")] == ["9.0 1", "9.0 0", "9.0 1", "9.0 0", "9.0 0"]


def test_every_layout_of_this_interpreter_is_known():
    """Else all calls go through the slow form, without a word."""
    unknown = [field for field, layout in layouts.known()._asdict().items() if layout is None]
    assert unknown == (["list"] if IS_FREE_THREADED else [])
    assert layouts.slot(EagerTensor, "_array") is not None
    assert layouts.slot(EagerTensor, "_array") != layouts.slot(EagerTensor, "dtype")


def word(obj: object, offset: int) -> int:
    return ctypes.c_size_t.from_address(id(obj) + offset).value


def test_fields_hold_what_the_objects_hold():
    known = layouts.known()
    assert known.tuple is not None and known.array is not None
    assert known.cell is not None and known.type is not None
    items = tuple(range(1000, 1020))
    assert word(items, known.tuple.length) == 20
    assert [word(items, known.tuple.items + 8 * at) for at in range(20)] == [id(each) for each in items]
    if known.list is not None:
        listed = [*items, "more"]
        assert word(listed, known.list.length) == 21
        assert ctypes.c_size_t.from_address(word(listed, known.list.items) + 160).value == id("more")
    assert word(CellType("content"), known.cell) == id("content")
    assert word(CellType(), known.cell) == 0
    assert word({}, known.type) == id(dict)
    array = np.ones((2, 5, 1), "complex64")[:, :3]
    assert word(array, known.array.data) == array.ctypes.data
    assert word(array, known.array.dtype) == id(array.dtype)
    assert ctypes.c_int32.from_address(id(array) + known.array.rank).value == 3
    assert ctypes.c_int32.from_address(id(array) + known.array.flags).value == array.flags.num
    sizes = word(array, known.array.sizes)
    assert [ctypes.c_size_t.from_address(sizes + 8 * axis).value for axis in range(3)] == [2, 3, 1]


@pytest.fixture
def looking_again():
    layouts.known.cache_clear()
    yield
    layouts.known.cache_clear()


def zeros(held: bytes) -> bytes:
    return bytes(len(held))


def flipped(held: bytes) -> bytes:
    return bytes(byte ^ 1 for byte in held)


def twice(held: bytes) -> bytes:
    return held + held


@pytest.mark.parametrize("damage", [zeros, flipped, twice])
def test_memory_that_does_not_hold_each_field_once_gives_no_layout(monkeypatch, looking_again, damage):
    before, read = layouts.known(), layouts._memory
    layouts.known.cache_clear()
    monkeypatch.setattr(layouts, "_memory", lambda obj, size: damage(read(obj, size)))
    found = layouts.known()
    if (
        damage is twice
    ):  # objects of different sizes: each class stands at one common place, and the text is found first
        assert (found.type, found.bytes) == (before.type, before.bytes)
        found = found._replace(type=None, bytes=None)
    assert found == layouts.Layouts()


def shifted(layout: object) -> object:
    """The same fields, 8 bytes further."""
    if layout is None:
        return None
    assert isinstance(layout, (int, tuple))
    return layout + 8 if isinstance(layout, int) else tuple(map(shifted, layout))


def test_fields_that_stand_elsewhere_are_found(monkeypatch, looking_again):
    """As CPython 3.14 moved the items of tuples."""
    before, read = layouts.known(), layouts._memory
    layouts.known.cache_clear()
    monkeypatch.setattr(layouts, "_memory", lambda obj, size: b"\1" * 8 + read(obj, size))
    assert layouts.known() == shifted(before)


@pytest.mark.parametrize("attribute, other", [("implementation", "pypy"), ("byteorder", "big")])
def test_nothing_is_looked_at_elsewhere(monkeypatch, looking_again, attribute, other):
    class Implementation:
        name = other

    monkeypatch.setattr(layouts.sys, attribute, Implementation if attribute == "implementation" else other)
    monkeypatch.setattr(layouts.ctypes, "string_at", lambda *_: pytest.fail("memory was read"))
    assert layouts.known() == layouts.Layouts()


def test_a_wrong_name_in_the_variable_is_an_error(monkeypatch, looking_again):
    monkeypatch.setenv(layouts.VARIABLE, "tuple,dictionary")
    with pytest.raises(ValueError, match=r"AUTOGRAPH_UNKNOWN_LAYOUTS names dictionary; the kinds are object, tuple, "):
        layouts.known()


# --- offsets stand nowhere else --------------------------------------------------------------------------------------

OBJECT_CODE = [
    *(ROOT / "runtime/engine/fastcall").glob("*.py"),
    ROOT / "runtime/llvm/wrapper.py",
    ROOT / "runtime/llvm/python_objects.py",
]


@pytest.mark.parametrize("path", OBJECT_CODE, ids=lambda path: path.stem)
def test_code_for_python_objects_has_no_offsets(path):
    """A literal number as an offset is allowed only into our own records."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("field", "at"):
            *_, place, offset = node.args if node.func.attr == "at" or len(node.args) < 3 else node.args[:3]
            if isinstance(offset, ast.Constant) and isinstance(offset.value, int) and len(node.args) < 4:
                own = ast.unparse(place) in ("'%record'", "self._record")
                assert own or unit_given(node), f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def unit_given(node: ast.Call) -> bool:
    """Whether the offset counts words of a plan or pointers of our own."""
    return len(node.args) == (4 if node.func.attr == "field" else 3) and isinstance(node.args[-1], ast.Constant)


def test_only_the_layouts_look_at_objects_in_memory():
    reads = re.compile(r"string_at\(id\(|from_address\(id\(|__basicsize__|__itemsize__|ob_refcnt|\bid\([^()]*\) \+")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for room in ("autograph", "runtime")
        for path in (ROOT / room).rglob("*.py")
        if path != Path(layouts.__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if reads.search(line)
    ]
    assert not found


def test_functions_for_unknown_layouts_are_written_only_where_needed():
    assert (python_objects.support() == "") == (None not in layouts.known())
    assert "@attribute" in python_objects.support(None)

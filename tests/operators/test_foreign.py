"""What C code and libraries keep, changed in staged code, is refused at its line, or is what it is in Python."""

from __future__ import annotations

import csv
import decimal
import functools
import hashlib
import io
import queue
import sqlite3
import struct
import threading
import zlib
from xml.etree import ElementTree

import pytest

import autograph as ag
from autograph.errors import StagingError

GIVEN = [3.0, 0.0, 2.0, 5.0, 1.0]


# Each makes an object, and gives a function that changes it.


def cursor():
    made = sqlite3.connect(":memory:").cursor()
    made.execute("create table rows (n)")
    return lambda: made.execute("insert into rows values (1)")


def child_by_method():
    root = ElementTree.Element("root")
    return lambda: root.append(ElementTree.Element("child"))


def child_by_function():
    root = ElementTree.Element("root")
    return lambda: ElementTree.SubElement(root, "child")


def text():
    root = ElementTree.Element("root")
    root.text = ""

    def change():
        root.text += "x"

    return change


def attribute_of_a_child():
    root = ElementTree.Element("root")
    ElementTree.SubElement(root, "child").set("n", "")
    return lambda: root[0].set("n", root[0].get("n") + "1")


def context():
    def change():
        decimal.getcontext().prec += 1

    return change


def another_context():
    return lambda: decimal.setcontext(decimal.Context(prec=7))


def context_in_a_variable():
    made = decimal.Context(prec=5)

    def change():
        made.prec += 1

    return change


def digest():
    made = hashlib.sha256()
    return lambda: made.update(b"a")


def compressor():
    made = zlib.compressobj()
    return lambda: made.compress(b"a")


def rows_of_a_file():
    made = csv.writer(io.StringIO())
    return lambda: made.writerow([1])


def items_of_a_queue():
    made = queue.SimpleQueue()
    return lambda: made.put(1)


def counts_of_a_cache():
    made = functools.lru_cache(lambda k: k)
    return lambda: made.cache_info()


def contents_of_a_cache():
    made = functools.lru_cache(lambda k: k)
    return lambda: made.cache_clear()


CHANGES = [
    cursor, child_by_method, child_by_function, text, attribute_of_a_child, context, another_context,
    context_in_a_variable, digest, compressor, rows_of_a_file, items_of_a_queue, counts_of_a_cache, contents_of_a_cache,
]  # fmt: skip


@pytest.fixture(autouse=True)
def own_context():
    with decimal.localcontext():
        yield


def in_loop(t, change):
    for _ in t:
        change()


def in_branch(t, change):
    if t[0] > 1.0:
        change()


@pytest.mark.parametrize("block", [in_loop, in_branch])
@pytest.mark.parametrize("made", CHANGES)
def test_changes_are_refused_at_their_line(made, block):
    change = made()

    @ag.function
    def run(t):
        block(t, change)

    with pytest.raises(
        StagingError, match="is (changed|called) in a branch or loop|whose results are cached"
    ) as caught:
        run(ag.constant(GIVEN))
    assert "test_foreign.py" in str(caught.value)
    assert "fix: " in str(caught.value)


@pytest.mark.parametrize("made", CHANGES)
def test_outside_of_staged_code_they_are_pythons(made):
    change = made()

    @ag.function
    def run(t):
        change()
        return t[0]

    assert float(run(ag.constant(GIVEN))) == 3.0


def test_questions_that_change_nothing_are_answered():
    packed, root, lock = struct.Struct("i"), ElementTree.fromstring("<a n='2'><b/></a>"), threading.Lock()
    third = decimal.Decimal(1) / 3

    @ag.function
    def run(t):
        total = 0.0
        for v in t:
            with lock:
                total += v * packed.size * len(root) * int(root.get("n"))
            if v > 1.0:
                total += float(third * 3)  # sets flags of the context
        return total

    right = sum(v * packed.size * 2 for v in GIVEN) + 3.0
    assert float(run(ag.constant(GIVEN))) == pytest.approx(right)


def test_a_cache_that_a_loop_uses_gives_no_counts_afterwards():
    double = functools.lru_cache(lambda k: 2 * k)

    @ag.function
    def run(t, asks):
        total = 0.0
        for v in t:
            total += v * double(3)
        return total + double.cache_info().hits if asks else total

    assert float(run(ag.constant(GIVEN), False)) == 66.0
    with pytest.raises(StagingError, match=r"cache_info\(\) of <lambda>"):
        run(ag.constant(GIVEN), True)


def test_a_file_is_written_to_when_the_program_runs(tmp_path, capsys):
    with open(tmp_path / "log.txt", "w+") as file:

        @ag.function
        def run(t):
            written = 0
            for v in t:
                if v > 1.5:
                    written += file.write(f"{v:.1f},")
                    file.writelines(["x", "\n"])
                    file.flush()
            return written

        assert int(run(ag.constant(GIVEN))) == 12
        assert int(run(ag.constant(GIVEN[:1]))) == 4
        file.seek(0)
        assert file.read() == "3.0,x\n2.0,x\n5.0,x\n3.0,x\n"


def test_a_file_that_a_loop_writes_to_is_not_read_while_the_function_is_traced(tmp_path):
    with open(tmp_path / "log.txt", "w+") as file:

        @ag.function
        def run(t):
            for _ in t:
                file.write("x")
            return file.tell()

        with pytest.raises(StagingError, match=r"tell\(\) of a stream that a branch or loop"):
            run(ag.constant(GIVEN))


def bump():
    queue.Queue.count += 1


def test_attributes_of_librarys_classes_are_state(monkeypatch):
    monkeypatch.setattr(queue.Queue, "count", 0, raising=False)

    @ag.function
    def run(t):
        queue.Queue.count = 0
        for v in t:
            if v > 0.0:
                bump()
        return queue.Queue.count

    assert int(run(ag.constant(GIVEN))) == 4


class Annotated:
    size: int


def add_annotation(owner):
    owner.__annotations__["n"] += 1


def exchange_annotations(owner):
    owner.__annotations__ = {"n": owner.__annotations__["n"] + 1}


def annotating(owner, change):
    @ag.function
    def run(t):
        owner.__annotations__ = {"n": 0}
        for v in t:
            if v > 0.0:
                change(owner)
        return owner.__annotations__["n"]

    return run


@pytest.mark.parametrize(
    "owner, change", [(Annotated, add_annotation), (bump, add_annotation), (bump, exchange_annotations)]
)
def test_annotations_are_state(owner, change, monkeypatch):
    monkeypatch.setattr(owner, "__annotations__", {})
    assert int(annotating(owner, change)(ag.constant(GIVEN))) == 4


def test_those_of_a_class_can_not_be_exchanged(monkeypatch):
    monkeypatch.setattr(Annotated, "__annotations__", {})
    with pytest.raises(StagingError, match="'Annotated.__annotations__' is exchanged in a branch or loop"):
        annotating(Annotated, exchange_annotations)(ag.constant(GIVEN))

"""What a program asks about a value that a tensor chooses is answered as in Python, or refused with its place.

The programs are a product: what is chosen, the question, and the blocks that choose and ask.
"""

from __future__ import annotations

import importlib.util

import pytest

import autograph as ag
from autograph.errors import StagingError
from runtime.errors import NoneValueError

GIVEN = [[3.0, 0.0, 2.0, 5.0, 1.0], [0.0, 0.5], [4.0, 4.0]]

BLOCKS = {
    "if": """
def program(t):
    s, n = {one}, 0
    if t[0] > 1.0:
        s = {other}
    if {question}:
        n += 1
    return n
""",
    "for": """
def program(t):
    s, n = {one}, 0
    for v in t:
        n = n * 2 + (1 if {question} else 0)
        s = {other} if v > 1.0 else {one}
    return n
""",
    "while": """
def program(t):
    s, n, v = {one}, 0, t[0]
    while v > -3.0:
        if {question}:
            n += 1
        if v > 1.0:
            s = {other}
        v = v - 1.0
    return n
""",
    "nested": """
def program(t):
    s, n = {one}, 0
    for v in t:
        if v > 0.0:
            if v > 2.0:
                s = {other}
            for w in t:
                if w > v:
                    s = {one}
                n += 1 if {question} else 0
        else:
            n = n * 2 + (10 if {question} else 0)
    return n
""",
    "helper": """
def asked(s):
    if {question}:
        return 1
    return 0

def program(t):
    s, n = {one}, 0
    for v in t:
        n = n * 2 + asked(s)
        s = {other} if v > 1.0 else {one}
    return n
""",
    "match": """
def program(t):
    s, n = {one}, 0
    for v in t:
        match s:
            case {pattern}:
                n = n * 2 + 1
            case _:
                n = n * 2
        match (v > 1.0, (s, 3)):
            case (_, ({inside}, 3)):
                n += 100
        s = {other} if v > 1.0 else {one}
    return n
""",
}

SAMENESS = [
    "s is {one}", "s is not {one}", "{other} is s", "s == {one}", "s != {other}", "{one} == s",
    "s in ({one},)", "s in [{other}]", "s not in ({one}, 5)", "s in ({one}, {other})",
]  # fmt: skip
KINDS = [
    "isinstance(s, type({one}))", "isinstance(s, (type({other}), complex))", "type(s) is type({one})",
    "type(s) == type({other})", "not isinstance(s, object)",
]  # fmt: skip


class Kind:
    """Two values that a program chooses between.

    refused: questions to which there is no answer in staged code, with {one} and {other} in them.
    none_raises: whether a comparison with the value raises where it is None, which in Python is unequal.
    """

    def __init__(self, one, other, questions=(), patterns=(), before="", refused=(), none_raises=False):
        self.one, self.other, self.before = one, other, before
        self.questions = [*SAMENESS, *KINDS, *questions]
        self.patterns = patterns
        self.refused = {*refused}
        self.none_raises = none_raises

    def programs(self, block):
        """Questions and texts."""
        for question in [*self.patterns] if block == "match" else self.questions:
            asked = question.format(one=self.one, other=self.other)
            inside = asked.split(" if ")[0]
            text = BLOCKS[block].format(one=self.one, other=self.other, question=asked, pattern=asked, inside=inside)
            yield question, self.before + text


_IS = ("s is {one}", "s is not {one}", "{other} is s")
ALTERNATIVES = {
    "flag": Kind(
        "False", "True", ["s is (not True)", "isinstance(s, int)", "s is None"],
        ["True", "False", "bool()", "int()", "bool(k) if k", "None", "True | None", "str()"],
    ),
    "flag or None": Kind(
        "None", "True", ["s is False", "s == None", "s != None", "None == s", "isinstance(s, bool)"],
        ["True", "False", "None", "True | None"], none_raises=True,
    ),
    "number": Kind(
        "1", "2", ["s is None", "s is True", "s == None", "isinstance(s, (float, str))", "isinstance(s, int)"],
        ["1", "int()", "int(k) if k > 1", "float()", "bool()", "None", "int() | None", "True"], refused=_IS,
    ),
    "number or None": Kind(
        "None", "2.5", ["s == None", "s != None", "s is True", "isinstance(s, (float, int))"],
        ["None", "True | None"], refused=_IS, none_raises=True,
    ),
    "member": Kind(
        "Phase.IDLE", "Phase.BUSY", ["s is None", "s.value == 1", "{{Phase.IDLE: 1}}.get(s, 0) == 1"],
        ["Phase.IDLE", "Phase()", "Phase() as k if k is Phase.BUSY", "None", "int()"],
        before="import enum\nclass Phase(enum.Enum):\n    IDLE = 0\n    BUSY = 1\n",
    ),
}  # fmt: skip


def loaded(path, text):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:.*with a literal:SyntaxWarning")
@pytest.mark.filterwarnings('ignore:"is:SyntaxWarning')
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", ALTERNATIVES)
def test_as_in_python_or_refused(name, block, tmp_path):
    kind = ALTERNATIVES[name]
    for number, (question, text) in enumerate(kind.programs(block)):
        python = loaded(tmp_path / f"python{number}.py", text)
        file = f"traced{number}.py"
        traced = ag.function(loaded(tmp_path / file, text).program)
        for given in GIVEN[number % 2 :]:
            try:
                got = int(traced(ag.constant(given)))
            except NoneValueError as error:
                assert kind.none_raises, (question, str(error), text)
                assert file in str(error)
            except StagingError as error:
                lines = str(error).splitlines()
                assert question in kind.refused, (question, str(error), text)
                assert any(file in line for line in lines), (question, str(error))
                assert any("cause: " in line for line in lines) and any("fix: " in line for line in lines), str(error)
            else:
                assert got == python.program(given), (question, given, got, text)

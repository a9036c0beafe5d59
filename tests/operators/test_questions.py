"""What a program asks about a value that a tensor chooses is answered as in Python, or refused with its place.

The programs are a product: what is chosen, the question, and the blocks that choose and ask.
"""

from __future__ import annotations

import importlib.util

import pytest

import autograph as ag
from autograph.errors import StagingError, StagingTypeError
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
    "object": Kind(
        "EULER", "HEUN",
        ["s is None", "s == None", "s.order == 2", "{{EULER: 1}}.get(s, 0) == 1", "{{EULER: 1, HEUN: 2}}[s] == 2",
         "s in {{EULER: 1}}", "s in {{HEUN}}", "id(s) == id(EULER)", "hash(s) != hash(HEUN)", "s is THIRD",
         "s == THIRD", "THIRD in (s,)", "(s, 1) == (EULER, 1)", "[EULER, HEUN].index(s) == 1", "s.is_euler()",
         "[EULER, HEUN, EULER].count(s) == 2", "s is STEPS['euler']"],
        ["Method()", "Method(order=2)", "None", "Names.euler", "Names.heun | Names.euler"],
        before='''
class Method:
    def __init__(self, order):
        self.order = order

    def is_euler(self):
        return self is EULER

EULER, HEUN, THIRD = Method(1), Method(2), Method(3)
STEPS = dict(euler=EULER)

class Names:
    euler, heun = EULER, HEUN
''',
        refused=["(s, 1) == (EULER, 1)", "[EULER, HEUN].index(s) == 1", "[EULER, HEUN, EULER].count(s) == 2"],
    ),
    "function": Kind(
        "add", "double", ["s is None", "s == None", "s(2.0) > 3.5", "{{add: 1}}.get(s, 0) == 1", "s in {{double: 1}}",
         "s.__name__ == 'add'", "callable(s)", "repr(s) == repr(add)", "id(s) == id(add)", "TABLE['double'] is s"],
        ["None", "Names.add", "int()"],
        before='''
def add(x):
    return x + 1.0

def double(x):
    if x > 1.0:
        return x * 2.0
    return x

TABLE = dict(add=add, double=double)

class Names:
    add, double = staticmethod(add), staticmethod(double)
''',
    ),
    "function or None": Kind(
        "None", "add", ["s is not None and s(2.0) > 2.0", "s == None", "callable(s)"], ["None", "True | None"],
        before="def add(x):\n    return x + 1.0\n",
    ),
    "class": Kind(
        "Few", "Many", ["s is None", "s.count == 1", "s().count == 1", "{{Few: 1}}.get(s, 0) == 1",
         "s.__name__ == 'Few'",
         "isinstance(MANY, s)", "issubclass(s, Many)", "issubclass(Few, s)", "s is type(MANY)", "s.twice() == 2"],
        ["None", "Names.few", "int()"],
        before='''
class Few:
    count = 1

    @classmethod
    def twice(cls):
        return cls.count * 2

class Many(Few):
    count = 5

MANY = Many()

class Names:
    few = Few
''',
        refused=["s().count == 1", "s.twice() == 2"],
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


class Node:
    def __init__(self, size):
        self.size = size


ONE, TWO, THREE = Node(1), Node(2), Node(3)


def made_in_the_loop(t):
    s, n = ONE, 0
    for v in t:
        made = Node(2)
        if s is ONE:
            n += 1
        s = made if v > 1.0 else ONE
        n += 10 if s is made else 100 if s == ONE else 1000
    return n


def two_names(t):
    s, r, n = ONE, TWO, 0
    for v in t:
        if v > 1.0:
            s, r = r, s
        n = n * 3 + (1 if s is r else 0) + (1 if r is ONE else 0)
    return n


def in_attributes_and_items(t):
    box, row, n = Node(ONE), [ONE, TWO], 0
    for v in t:
        n = n * 3 + (1 if box.size is TWO else 0) + (1 if row[0] == TWO else 0)
        box.size = TWO if v > 1.0 else ONE
        if v > 2.0:
            row[0], row[1] = row[1], row[0]
    return n


def three(t):
    s, n = ONE, 0
    for v in t:
        n = n * 2 + (1 if s in (TWO, THREE) else 0)
        if v > 4.0:
            s = THREE
        elif v > 1.0:
            s = TWO
    return n


def chosen_tensors(t):
    a, b, n = t * 1.0, t * 2.0, 0
    best = other = a
    if t[0] > 1.0:
        best = b
    if t[0] < 5.0:
        other = t * 2.0
    n += 1 if best is b else 0
    n += 10 if best is not a else 0
    n += 100 if other is a or other is b else 0
    return n


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(
    "program", [made_in_the_loop, two_names, in_attributes_and_items, three, chosen_tensors], ids=lambda f: f.__name__
)
def test_which_object(program, given):
    given = ag.constant(given)
    assert int(ag.function(program)(given)) == int(program(given))


def made_in_two_iterations(t):
    s, n = ONE, 0
    for v in t:
        before = s
        s = Node(2) if v > 1.0 else ONE
        if s is before:
            n += 1
    return n


def chosen_lists(t):
    one, other = [t], [t + 1.0]
    row = one
    if t[0] > 1.0:
        row = other
    return 1 if row is other else 0


def tensors_of_a_loop(t):
    best = first = t[0]
    n = 0
    for v in t:
        if best is first:
            n += 1
        best = v if v > best else best
    return n


def in_a_set(t):
    s, seen = ONE, set()
    if t[0] > 1.0:
        s = TWO
    seen.add(s)
    return len(seen)


@pytest.mark.parametrize(
    "program", [made_in_two_iterations, chosen_lists, tensors_of_a_loop, in_a_set], ids=lambda f: f.__name__
)
def test_unknown_objects_are_refused(program):
    with pytest.raises(StagingTypeError, match=rf"(?s)chosen.*{__name__.rpartition('.')[2]}.py.*cause: .*fix: "):
        ag.function(program)(ag.constant(GIVEN[0]))


def test_no_object_is_changed():
    before = [dict(vars(each)) for each in (ONE, TWO, THREE)]
    ag.function(three)(ag.constant(GIVEN[0]))
    assert [vars(each) for each in (ONE, TWO, THREE)] == before

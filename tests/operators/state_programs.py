"""Programs that change state in staged code: every holder of a value, way of writing, kind of block and kind of value.

Each program takes a tensor, or a list of numbers for plain Python, and returns what the state is in the end.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

# Another module of the program's, with state of its own.
STATE_MODULE = """
n = 0
table = {}

def put(value):
    global n
    n = value
"""


@dataclasses.dataclass(frozen=True)
class Holder:
    """Where a value is kept.

    setup    makes the holder and gives it its first value, START
    read     an expression for the value
    writes   statements that give it the value NEW; with STEP they add to it
    declare  stands in each function that writes
    module   stands in front of the program
    refuses  whether nothing that a trace makes can be kept there; it isn't asked to keep objects
    """

    setup: str
    read: str
    writes: tuple[str, ...]
    declare: str = ""
    module: str = ""
    refuses: bool = False


def attribute(owner: str, setup: str, module: str = "", more: tuple[str, ...] = ()) -> Holder:
    writes = (f"{owner}.n = NEW", f"{owner}.n += STEP", f"setattr({owner}, 'n', NEW)", *more)
    return Holder(f"{setup}\n{owner}.n = START", f"{owner}.n", writes, module=module)


def item(
    owner: str, key: str, setup: str, module: str = "", more: tuple[str, ...] = (), refuses: bool = False
) -> Holder:
    writes = (f"{owner}[{key}] = NEW", f"{owner}[{key}] += STEP", f"{owner}.__setitem__({key}, NEW)", *more)
    return Holder(f"{setup}\n{owner}[{key}] = START", f"{owner}[{key}]", writes, module=module, refuses=refuses)


_PLAIN = "class Plain:\n    pass\n"
HOLDERS = {
    "variable": Holder("n = START", "n", ("n = NEW", "n += STEP"), declare="nonlocal n"),
    "global": Holder(
        "n = START",
        "n",
        ("n = NEW", "n += STEP", "globals()['n'] = NEW", "globals().update(n=NEW)"),
        declare="global n",
    ),
    "instance": attribute(
        "box", "box = Plain()", _PLAIN, ("vars(box)['n'] = NEW", "box.__dict__['n'] = NEW", "vars(box).update(n=NEW)")
    ),
    "slots": attribute("box", "box = Slotted()", "class Slotted:\n    __slots__ = ('n',)\n"),
    "dataclass": attribute("box", "box = Data(0)", "@dataclasses.dataclass\nclass Data:\n    n: object\n"),
    "namespace": attribute("box", "box = types.SimpleNamespace()"),
    "global instance": attribute("box", "box.n = 0", f"{_PLAIN}box = Plain()\n"),
    "object in objects": attribute("shell.inner[0]", "shell = Plain()\nshell.inner = [Plain()]", _PLAIN),
    "class": attribute("Plain", "", "class Plain:\n    n = 0\n", ("type.__setattr__(Plain, 'n', NEW)",)),
    "local class": attribute("Plain", "class Plain:\n    pass"),
    "class of an instance": attribute("type(box)", "box = Plain()", _PLAIN),
    "class with a base": attribute("Plain", "", "class Base:\n    n = 0\nclass Plain(Base):\n    pass\n"),
    "base class": Holder(
        "Base.n = START",
        "Plain.n",
        ("Base.n = NEW", "Base.n += STEP"),
        module="class Base:\n    n = 0\nclass Plain(Base):\n    pass\n",
    ),
    "class default": Holder(
        "Plain.n = START\nbox = Plain()",
        "box.n",
        ("box.n = NEW", "box.n += STEP", "setattr(box, 'n', NEW)"),
        module=_PLAIN,
    ),
    "class method": Holder(
        "Plain.n = START",
        "Plain.n",
        ("Plain.put(NEW)", "Plain().put(NEW)"),
        module="class Plain:\n    @classmethod\n    def put(cls, value):\n        cls.n = value\n",
    ),
    "property": Holder(
        "box = Plain()\nbox.kept = START",
        "box.n",
        ("box.n = NEW", "box.n += STEP", "setattr(box, 'n', NEW)"),
        module=(
            "class Plain:\n    @property\n    def n(self):\n        return self.kept\n"
            "    @n.setter\n    def n(self, value):\n        self.kept = value\n"
        ),
    ),
    "method": Holder(
        "box = Plain()\nbox.put(START)",
        "box.n",
        ("box.put(NEW)", "put = box.put; put(NEW)", "functools.partial(Plain.put, box)(NEW)"),
        module="class Plain:\n    def put(self, value):\n        self.n = value\n",
    ),
    "method of a local class": Holder(
        "n = START\nclass Local:\n    def put(self, value):\n        nonlocal n\n        n = value\nbox = Local()",
        "n",
        ("box.put(NEW)", "Local.put(box, NEW)"),
    ),
    "function": attribute("keep", "", "def keep():\n    pass\n", ("vars(keep)['n'] = NEW",)),
    "local function": attribute("keep", "def keep():\n    pass"),
    "module": attribute("state_module", "", "import state_module\n", ("vars(state_module)['n'] = NEW",)),
    "function of a module": Holder(
        "state_module.put(START)", "state_module.n", ("state_module.put(NEW)",), module="import state_module\n"
    ),
    "item of a module": item("state_module.table", "'n'", "", "import state_module\n"),
    "dictionary": item("table", "'n'", "table = {}", more=("table.update(n=NEW)",)),
    "global dictionary": item("table", "'n'", "", "table = {}\n", ("table.update(n=NEW)",)),
    "default dictionary": item("table", "'n'", "table = collections.defaultdict(int)"),
    "list": item("row", "0", "row = [0, 0]", more=("row[0:1] = [NEW]", "row.insert(0, NEW); row.pop(1)")),
    "list in a tuple": item("rows[0]", "0", "rows = ([0, 0],)"),
    "class dictionary": item("Plain.table", "'n'", "", "class Plain:\n    table = {}\n"),
    "class list": item("Plain.row", "0", "", "class Plain:\n    row = [0]\n"),
    "object with items": item(
        "box",
        "'n'",
        "box = Plain()",
        "class Plain:\n    def __init__(self):\n        self.kept = None\n"
        "    def __getitem__(self, key):\n        return self.kept\n"
        "    def __setitem__(self, key, value):\n        self.kept = value\n",
    ),
    "default argument": Holder(
        "def put(value, table={}):\n    table['n'] = value\nput(START)",
        "put.__defaults__[0]['n']",
        ("put(NEW)",),
    ),
    "keyword default": Holder(
        "row = [0]\ndef put(value, *, kept=row):\n    kept[0] = value\nput(START)", "row[0]", ("put(NEW)",)
    ),
    "partial": Holder(
        "row = [0]\ndef write(kept, value):\n    kept[0] = value\nput = functools.partial(write, row)\nput(START)",
        "row[0]",
        ("put(NEW)",),
    ),
    "bound method of a list": Holder("row = [0]\nput = row.__setitem__\nput(0, START)", "row[0]", ("put(0, NEW)",)),
    "context variable": Holder(
        "current.set(START)",
        "current.get()",
        ("current.set(NEW)",),
        module="import contextvars\ncurrent = contextvars.ContextVar('current')\n",
    ),
    "array": item("row", "0", "row = array.array('d', [0.0])", "import array\n", refuses=True),
    "NumPy array": item("row", "0", "row = np.zeros(2)", "import numpy as np\n", refuses=True),
    "bytes": item("row", "0", "row = bytearray(2)", refuses=True),
    "default of a function": Holder(
        "def keep(n=START):\n    return n",
        "keep()",
        ("keep.__defaults__ = (NEW,)", "setattr(keep, '__defaults__', (NEW,))"),
    ),
    "default of a method": Holder(
        "Plain.keep.__defaults__ = (START,)\nbox = Plain()",
        "box.keep()",
        ("Plain.keep.__defaults__ = (NEW,)", "box.keep.__func__.__defaults__ = (NEW,)"),
        module="class Plain:\n    def keep(self, n=0):\n        return n\n",
    ),
    "keyword default of a function": Holder(
        "def keep(*, n=START):\n    return n",
        "keep()",
        ("keep.__kwdefaults__ = {'n': NEW}", "keep.__kwdefaults__['n'] = NEW", "keep.__kwdefaults__.update(n=NEW)"),
    ),
    "dictionary of an instance": Holder(
        "box = Plain()\nbox.n = START",
        "box.n",
        ("box.__dict__ = {'n': NEW}", "setattr(box, '__dict__', {'n': NEW})"),
        module=_PLAIN,
        refuses=True,
    ),
    "equal instances": Holder(
        "box = Equal(START)",
        "box.n",
        ("box = Equal(NEW)",),
        "nonlocal box",
        "class Equal:\n    def __init__(self, n):\n        self.n = n\n"
        "    def __eq__(self, other):\n        return True\n    __hash__ = None\n",
    ),
    "referenced weakly": attribute("weak()", "box = Plain()\nweak = weakref.ref(box)", _PLAIN),
    "proxy": attribute("weak", "box = Plain()\nweak = weakref.proxy(box)", _PLAIN),
    "instance of a list's class": attribute("box", "box = Row([1])", "class Row(list):\n    n = 0\n"),
    "module of Python's": attribute("weakref", ""),
    "counter": item("table", "'n'", "table = collections.Counter()"),
    "ordered dictionary": item("table", "'n'", "table = collections.OrderedDict()"),
    "user dictionary": item("table", "'n'", "table = collections.UserDict()", more=("table.data['n'] = NEW",)),
    "chained maps": item("table", "'n'", "table = collections.ChainMap({}, {'m': 0})"),
    "replaced dataclass": Holder(
        "box = Data(START)",
        "box.n",
        ("box = dataclasses.replace(box, n=NEW)",),
        "nonlocal box",
        "@dataclasses.dataclass\nclass Data:\n    n: object\n",
    ),
    "replaced named tuple": Holder(
        "pair = Pair(START, 1)",
        "pair.n",
        ("pair = pair._replace(n=NEW)",),
        "nonlocal pair",
        "Pair = collections.namedtuple('Pair', 'n m')\n",
    ),
    "context manager": Holder(
        "row = [START]\n@contextlib.contextmanager\ndef setting(value):\n    row[0] = value\n    yield",
        "row[0]",
        ("with setting(NEW): pass",),
    ),
    "view of bytes": item("view", "0", "row = bytearray(2)\nview = memoryview(row)", refuses=True),
    "C value": Holder("cell = ctypes.c_double(0)", "cell.value", ("cell.value = NEW",), refuses=True),
    "text stream": Holder(
        "stream = io.StringIO()", "stream.tell()", ("stream.write('a')", "stream.writelines(['a', 'b'])"), refuses=True
    ),
}  # fmt: skip

# What a block does with WRITE, the statement; `v` is a value of the tensor. DEF stands for the head of a helper.
BLOCKS = {
    "loop": "for v in t:\n    WRITE",
    "while": "v = t[0]\nwhile v > 0.0:\n    WRITE\n    v = v - 1.0",
    "branch": "for k in range(5):\n    v = t[k]\n    if v > 1.0:\n        WRITE",
    "other branch": "for k in range(5):\n    v = t[k]\n    if v > 1.0:\n        pass\n    else:\n        WRITE",
    "branch in a loop": "for v in t:\n    if v > 1.0:\n        WRITE",
    "nested loops": "for w in t:\n    for v in t:\n        if v > w:\n            WRITE",
    "loop that is left": "for v in t:\n    if v > 4.0:\n        break\n    WRITE",
    "helper": "def helper(v):\n    DECLARE\n    WRITE\nfor v in t:\n    if v > 1.0:\n        helper(v)",
    "helper of a helper": (
        "def inner(v):\n    DECLARE\n    WRITE\n"
        "def outer(v):\n    if v > 1.0:\n        inner(v)\nfor v in t:\n    outer(v)"
    ),
    "method": (
        "class Worker:\n    def work(self, v):\n        DECLARE\n        WRITE\nworker = Worker()\n"
        "for v in t:\n    if v > 1.0:\n        worker.work(v)"
    ),
    "functions of cond": (
        "def then():\n    DECLARE\n    WRITE\n    return 0\n"
        "for k in range(5):\n    v = t[k]\n    ag.cond(v > 1.0, then, lambda: 0)"
    ),
    "function of while_loop": (
        "v = t[0]\ndef step(w):\n    DECLARE\n    nonlocal v\n    v = w\n    WRITE\n    return (w - 1.0,)\n"
        "ag.while_loop(lambda w: w > 0.0, step, (v,))"
    ),
    "function of map_fn": (
        "def each(v):\n    DECLARE\n    WRITE\n    return v\nag.map_fn(each, ag.convert_to_tensor(t))"
    ),
    "recursion": (
        "def down(v):\n    DECLARE\n    if v > 0.0:\n        WRITE\n        return down(v - 1.0)\n"
        "    return v\ndown(t[0])"
    ),
}

# For each kind of value its start, what it becomes, what is added to it, and what it is as a number.
VALUES = {
    "number": ("0", "READ + 1", "1", "READ"),
    "tensor": ("0.0", "READ + v", "v", "READ"),
    "object": ("Kept(0)", "Kept(READ.n + 1)", None, "READ.n"),
}

_HEAD = """
import collections
import contextlib
import ctypes
import dataclasses
import functools
import io
import types
import weakref

import autograph as ag

class Kept:
    def __init__(self, n):
        self.n = n
"""


def _indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}\n" for line in text.splitlines())


def programs(name: str) -> Iterator[tuple[str, str]]:
    """The programs for a holder, each with what it does, in words."""
    holder = HOLDERS[name]
    for (block_name, block), write, (value_name, value) in itertools.product(
        BLOCKS.items(), holder.writes, VALUES.items()
    ):
        start, new, step, result = (each and each.replace("READ", holder.read) for each in value)
        if (value_name == "object" and ("STEP" in write or holder.refuses)) or (
            name in ("bytes", "view of bytes") and step != "1"
        ):
            continue
        write = write.replace("NEW", new).replace("STEP", step or "")
        declare = holder.declare if "DECLARE" in block else ""
        lines = block.replace("DECLARE", declare or "pass").replace("WRITE", write)
        setup = holder.setup.replace("START", start)
        top = holder.declare if holder.declare.startswith("global") else ""
        body = "\n".join(each for each in (top, setup, lines, f"return {result}") if each)
        text = f"{_HEAD}\n{holder.module}\ndef program(t):\n{_indented(body, '    ')}"
        yield f"{name}, {write}, {block_name}, {value_name}", text

"""The kernel IR: typed statements over typed expressions.

    module     = function*                                 the kernel, and the functions that it calls
    function   = Function(name, parameters, body, kind)    kind: 'kernel', 'part' (what one thread runs), 'recursive',
                                                           'library' (parsed from the library's Python)

    statement  = Assign(targets, value)                    a = e        a, b = b, a        a, b = f(x)
               | Alloc(name, size, element)                a = np.empty(n, np.float32)     nothing is initialised
               | Store(array, index, value)                a[i] = e
               | For(index, start, stop, step, body)       for i in range(start, stop, step): ...
                                                           `nest`: over elements; `parallel`: trips independent, and
                                                           many; `independent`: though subscripts don't show it
               | While(test, body)                         `loop`: what lowering knows of a loop of the program
               | If(test, body, orelse)
               | Break() | Continue()
               | Run(call)                                 lib.matmul(...)   a call for its effect
               | Return(values)
               | Fail(status, details)                     leaves the kernel with an error status

    expression = Var(name)                                 a variable, or a function that is handed over
               | Const(value, type)                        np.float32(2.5)
               | Unary(op, operand)                        - + ~ not
               | Binary(op, left, right)                   + - * / // % ** & | ^ << >>
               | Compare(op, left, right)                  < <= > >= == !=
               | Logic(op, operands)                       and, or: the later operands only where they are needed
               | Select(test, yes, no)                     yes if test else no: one of them is computed
               | Convert(target, operand)                  np.int32(e); lib.bfloat16(e): the number of these bits
               | Load(array, index)                        a[i]: a flat array
               | Size(array) | Dim(array, axis)            a.size, a.shape[0]
               | Call(function, arguments)                 lib.tanh(x), math.sqrt(x), max(a, b)
               | Tuple(items)                              several arguments in one
               | ElementType(array)                        a.dtype: in the library only
               | Named(type)                               np.float32 as an argument

Expressions are immutable and may be shared; two of the same form are equal. Statements are changed in place by passes
and compared by identity. An expression reads memory only through `Load`, and has no effects (a `Call` may read arrays;
those that write one stand in `Run`). What a statement reads is `variables` below, what it assigns `targets`.

`type` is the machine type of an expression's value (`types.py`). Who makes a variable states its type; any other
expression gets its own when it is made, from those of its operands (`result_types.py`, `functions.py`). Library
functions are generic: their variables have no types (None), and inference finds them for each call (`llvm/infer.py`);
so in kernels from text.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from typing import Any, overload

from runtime.dataclass import dataclass
from runtime.kernel_ir import functions, result_types
from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, Type, Unsupported, unified

# How an expression is shown: `print_python` registers its function here.
shown: list[Callable[[Any], str]] = []


class Operators:
    """Arithmetic on expressions builds expressions: `i * n + 1`. Python integers are int64 constants."""

    __slots__ = ()

    def __add__(self, other: Expr | int) -> Binary:
        return Binary("+", self, as_expr(other))  # type: ignore[arg-type]

    def __radd__(self, other: int) -> Binary:
        return Binary("+", as_expr(other), self)  # type: ignore[arg-type]

    def __sub__(self, other: Expr | int) -> Binary:
        return Binary("-", self, as_expr(other))  # type: ignore[arg-type]

    def __rsub__(self, other: int) -> Binary:
        return Binary("-", as_expr(other), self)  # type: ignore[arg-type]

    def __mul__(self, other: Expr | int) -> Binary:
        return Binary("*", self, as_expr(other))  # type: ignore[arg-type]

    def __rmul__(self, other: int) -> Binary:
        return Binary("*", as_expr(other), self)  # type: ignore[arg-type]

    def __floordiv__(self, other: Expr | int) -> Binary:
        return Binary("//", self, as_expr(other))  # type: ignore[arg-type]

    def __rfloordiv__(self, other: int) -> Binary:
        return Binary("//", as_expr(other), self)  # type: ignore[arg-type]

    def __mod__(self, other: Expr | int) -> Binary:
        return Binary("%", self, as_expr(other))  # type: ignore[arg-type]

    def __truediv__(self, other: Expr) -> Binary:
        return Binary("/", self, as_expr(other))  # type: ignore[arg-type]

    def __neg__(self) -> Expr:
        return Unary("-", self)  # type: ignore[arg-type]

    def compare(self, op: str, other: Expr | int) -> Compare:
        """`self < other` and the like."""
        return Compare(op, self, as_expr(other))  # type: ignore[arg-type]

    def choose(self, yes: Expr | int, no: Expr | int) -> Select:
        """`yes if self else no`."""
        return Select(self, as_expr(yes), as_expr(no))  # type: ignore[arg-type]

    def __str__(self) -> str:
        return shown[0](self)


@overload
def as_expr(item: int) -> Const: ...
@overload
def as_expr(item: Expr) -> Expr: ...
def as_expr(item: Expr | int) -> Expr:
    """An expression; of a Python integer, the constant."""
    return Const(item, INT64) if isinstance(item, int) else item


class Derived(Operators):
    """Its type follows from those of its operands; None for an operation that our own compiler doesn't have."""

    __slots__ = ()

    def __post_init__(self) -> None:
        if self.type is not None:  # type: ignore[attr-defined]
            return
        operands = _OPERANDS[type(self)](self)
        for each in operands:
            if each.type is None:
                return
        with contextlib.suppress(Unsupported):
            object.__setattr__(self, "type", _TYPE_RULES[type(self)](self, *[each.type for each in operands]))


# --- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Var(Operators):
    name: str
    type: Type | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Var) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Const(Operators):
    """A number or truth value of exactly this type. Two are equal where type and bits are: 1, 1.0 and True differ."""

    value: bool | int | float
    type: Scalar

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Const) and self.type == other.type and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))


@dataclass(frozen=True, slots=True)
class Unary(Derived):
    op: str
    operand: Expr
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Binary(Derived):
    op: str
    left: Expr
    right: Expr
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Compare(Derived):
    op: str
    left: Expr
    right: Expr
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Logic(Derived):
    op: str
    operands: tuple[Expr, ...]
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Select(Derived):
    test: Expr
    yes: Expr
    no: Expr
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Convert(Operators):
    target: Scalar
    operand: Expr

    @property
    def type(self) -> Scalar | None:
        return self.target if self.operand.type is not None else None


@dataclass(frozen=True, slots=True)
class Load(Derived):
    array: Expr
    index: Expr
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Size(Derived):
    array: Expr
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Dim(Derived):
    array: Expr
    axis: int
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call(Derived):
    """`function` is a dotted name: of the library (`lib.exp`), of Python (`max`), or of a function in the module, whose
    result's type has to be stated. A call for its effect has none."""

    function: str
    arguments: tuple[Expr, ...]
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Tuple(Derived):
    items: tuple[Expr, ...]
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ElementType(Operators):
    array: Expr
    type: Type | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Named(Operators):
    target: Scalar
    type: Type | None = field(default=None, compare=False)


Expr = (
    Var | Const | Unary | Binary | Compare | Logic | Select | Convert | Load | Size | Dim | Call | Tuple
    | ElementType | Named
)  # fmt: skip


_TYPE_RULES: dict[type, Callable[..., Type | None]] = {
    Unary: lambda item, operand: result_types.unary(item.op, operand),
    Binary: lambda item, left, right: result_types.binary(item.op, left, right),
    Compare: lambda item, *types: BOOL,
    Logic: lambda item, *types: BOOL,
    Select: lambda item, test, yes, no: unified(yes, no),
    Load: lambda item, array, index: result_types.element(array),
    Size: lambda item, array: INT64,
    Dim: lambda item, array: INT64,
    Call: lambda item, *types: functions.result(item.function, *types),
    Tuple: lambda item, *types: result_types.several(*types),
}

ZERO, ONE = Const(0, INT64), Const(1, INT64)
TRUE, FALSE = Const(True, BOOL), Const(False, BOOL)


# --- statements ------------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Assign:
    targets: tuple[str, ...]
    value: Expr


@dataclass(eq=False, slots=True)
class Alloc:
    """Allocates a flat array. Its elements are uninitialised."""

    name: str
    size: Expr
    element: Scalar | ElementType

    @property
    def variable(self) -> Var:
        return Var(self.name, Array(self.element) if isinstance(self.element, Scalar) else None)


@dataclass(eq=False, slots=True)
class Store:
    array: Expr
    index: Expr
    value: Expr


@dataclass(eq=False, slots=True)
class For:
    index: str
    start: Expr
    stop: Expr
    step: Expr
    body: Block
    nest: bool = False
    parallel: bool = False
    independent: bool = False


@dataclass(eq=False, slots=True)
class While:
    test: Expr
    body: Block
    loop: Loop | None = None


@dataclass(eq=False, slots=True)
class Loop:
    """What lowering knows about a loop of the program, for the passes.

    cost      the cost of a trip in ticks (see `passes/interrupt_polls.py`)
    span      the user's line
    is_inner  whether it is inside another loop
    carried   the carried arrays whose shape stays the same -> whether the kernel owns their memory from the start
    given     all variables that have a value when it begins
    stacks    (data, top) of the stacks to which each trip pushes exactly one number, and which it doesn't use otherwise
    counter   the induction variable that the loop tests, if there is one
    """

    cost: int
    span: Any
    is_inner: bool
    carried: dict[str, bool]
    given: set[str]
    stacks: tuple[tuple[Var, Var], ...] = ()
    counter: Induction | None = None


@dataclass(frozen=True, slots=True)
class Induction:
    """A variable that each trip moves by `step` until it reaches `limit`.

    least_step  the least that `step` can be, as an absolute value
    most        the most that there can be between the first value and the limit
    exact       the distance, where it is known; `leaves`: a trip may leave the loop where it begins
    """

    variable: Var
    limit: Expr
    step: Expr
    is_up: bool
    least_step: int
    most: int
    exact: int | None
    leaves: bool = False


@dataclass(eq=False, slots=True)
class If:
    test: Expr
    body: Block
    orelse: Block = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Break:
    pass


@dataclass(eq=False, slots=True)
class Continue:
    pass


@dataclass(eq=False, slots=True)
class Run:
    call: Call


@dataclass(eq=False, slots=True)
class Return:
    values: tuple[Expr, ...]


@dataclass(eq=False, slots=True)
class Fail:
    """status: the number of a failure site, or the variable that holds the status of a call, whose details stand in
    variables beside it. details: the integers that the error's message shows."""

    status: int | str
    details: tuple[Expr, ...] = ()


Statement = Assign | Alloc | Store | For | While | If | Break | Continue | Run | Return | Fail
Block = list[Statement]


@dataclass(eq=False, slots=True)
class Function:
    """kind: see above. returns: the types of a recursive function's results, which it has to say before they are
    found. Where a function may fail, `failure` makes the values that it returns from a `Fail`."""

    name: str
    parameters: tuple[str, ...]
    body: Block
    kind: str = "kernel"
    returns: str | None = None


def range_bounds(arguments: Sequence[Expr | int]) -> tuple[Expr, Expr, Expr]:
    """Start, stop and step from the arguments of Python's `range`."""
    first, *others = [as_expr(each) for each in arguments]
    return (first, others[0], others[1] if len(others) == 2 else ONE) if others else (ZERO, first, ONE)


def either(*tests: Expr) -> Expr:
    """Whether any of the conditions holds. Later ones are evaluated only if needed."""
    return tests[0] if len(tests) == 1 else Logic("or", tests)


def alternatives(test: Expr) -> tuple[Expr, ...]:
    """The operands of a disjunction: `test` alone if it is none."""
    return test.operands if isinstance(test, Logic) and test.op == "or" else (test,)


def both(*tests: Expr) -> Expr:
    """Whether all of the conditions hold."""
    return tests[0] if len(tests) == 1 else Logic("and", tests)


def negated(test: Expr) -> Expr:
    return test.operand if isinstance(test, Unary) and test.op == "not" else Unary("not", test)


def truth(value: bool) -> Const:
    return TRUE if value else FALSE


def call(function: str, *arguments: Expr | int) -> Call:
    return Call(function, tuple(as_expr(each) for each in arguments))


def assign(target: Var | str, value: Expr | int) -> Assign:
    """An assignment to one variable, which may be given by its name."""
    return Assign((target if isinstance(target, str) else target.name,), as_expr(value))


def load(array: Var, index: Expr | int) -> Load:
    return Load(array, as_expr(index))


def store(array: Var, index: Expr | int, value: Expr | int) -> Store:
    return Store(array, as_expr(index), as_expr(value))


def size_variable(name: str) -> Var:
    """A variable that holds a size, an index or another integer of the kernel's own."""
    return Var(name, INT64)


def array_variable(name: str, element: Scalar) -> Var:
    """A variable that holds a flat array."""
    return Var(name, Array(element))


# Counts ticks for the poll for Ctrl-C (codegen/passes/interrupt_polls.py). It doesn't keep loops from being vectorised.
TICKS = "ticks"


def set_to(target: Var | Load, value: Expr | int) -> Assign | Store:
    """Assigns a value to a variable or an array element."""
    if isinstance(target, Var):
        return assign(target, value)
    return Store(target.array, target.index, as_expr(value))


# --- walks -----------------------------------------------------------------------------------------------------------

_CHILDREN: dict[type, tuple[str, ...]] = {
    Var: (), Const: (), Unary: ("operand",), Binary: ("left", "right"), Compare: ("left", "right"),
    Logic: ("operands",), Select: ("test", "yes", "no"), Convert: ("operand",), Load: ("array", "index"),
    Size: ("array",), Dim: ("array",), Call: ("arguments",), Tuple: ("items",), ElementType: ("array",), Named: (),
    Assign: ("value",), Alloc: ("size", "element"), Store: ("array", "index", "value"),
    For: ("start", "stop", "step"), While: ("test",), If: ("test",), Break: (), Continue: (), Run: ("call",),
    Return: ("values",), Fail: ("details",),
}  # fmt: skip
_FIELDS = {kind: tuple(each.name for each in fields(kind)) for kind in _CHILDREN}
_BLOCKS: dict[type, tuple[str, ...]] = {For: ("body",), While: ("body",), If: ("body", "orelse")}


def _reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Expr, ...]]:
    """The function that gives the operands of a kind of expression or statement."""
    if names in (("operands",), ("arguments",), ("items",), ("values",), ("details",)):
        return operator.attrgetter(*names)
    if not names:
        return lambda item: ()
    read: Callable[[Any], Any] = operator.attrgetter(*names)
    return read if len(names) > 1 else lambda item: (read(item),)


_OPERANDS = {kind: _reader(names) for kind, names in _CHILDREN.items()}
_OPERANDS[Alloc] = lambda item: (item.size,) if isinstance(item.element, Scalar) else (item.size, item.element)


def operands(item: Expr | Statement) -> tuple[Expr, ...]:
    """The expressions directly in an expression or a statement; not those in a statement's blocks."""
    return _OPERANDS[type(item)](item)


def subexpressions(item: Expr) -> list[Expr]:
    """The expression and all in it, each before its operands."""
    found: list[Expr] = []
    _collect(item, found)
    return found


def expressions(item: Expr | Statement) -> list[Expr]:
    """All expressions in a statement, down to the smallest, but for those in its blocks; or in an expression, which is
    the first."""
    found: list[Expr] = []
    for operand in (item,) if isinstance(item, Operators) else _OPERANDS[type(item)](item):
        _collect(operand, found)
    return found


def _collect(item: Expr, found: list[Expr]) -> None:
    found.append(item)
    for operand in _OPERANDS[type(item)](item):
        _collect(operand, found)


def blocks(item: Statement) -> list[Block]:
    """The blocks directly in a statement."""
    return [getattr(item, name) for name in _BLOCKS[type(item)]] if type(item) in _BLOCKS else []


def walk(block: Iterable[Statement]) -> Iterator[Statement]:
    """The statements of a block and of all blocks in it, in program order."""
    waiting = [iter(block)]  # not recursive: that would pass each statement through all blocks around it
    while waiting:
        item = next(waiting[-1], None)
        if item is None:
            waiting.pop()
            continue
        yield item
        if type(item) in _BLOCKS:
            waiting += [iter(inner) for inner in reversed(blocks(item))]


def walk_with_blocks(block: Block) -> Iterator[tuple[Block, Statement]]:
    """Yields (block, statement) for the statements of a block and of all blocks in it, in program order; `block` is the
    one that contains the statement."""
    waiting = [(block, iter(block))]
    while waiting:
        current, rest = waiting[-1]
        item = next(rest, None)
        if item is None:
            waiting.pop()
            continue
        yield current, item
        waiting += [(inner, iter(inner)) for inner in reversed(blocks(item))]


def may_leave(block: Iterable[Statement]) -> bool:
    """Whether a statement in a block leaves the function."""
    return any(isinstance(item, (Return, Fail)) for item in walk(block))


def walk_blocks(block: Block) -> Iterator[Block]:
    """The block and all blocks in it, outer ones first."""
    waiting = [block]
    while waiting:
        current = waiting.pop()
        yield current
        waiting += [inner for item in reversed(current) for inner in reversed(blocks(item))]


def variables(item: Expr | Statement) -> set[str]:
    """The names of the variables that an expression, or a statement without its blocks, reads."""
    return {each.name for each in expressions(item) if type(each) is Var}


def targets(item: Statement) -> tuple[str, ...]:
    """The variables that a statement, without its blocks, assigns. A `Store` only changes memory."""
    if isinstance(item, Assign):
        return item.targets
    if isinstance(item, Alloc):
        return (item.name,)
    if isinstance(item, For):
        return (item.index,)
    return ()


def assigned(block: Iterable[Statement]) -> set[str]:
    """The variables that are assigned anywhere in a block."""
    return {name for item in walk(block) for name in targets(item)}


def mentioned(block: Iterable[Statement]) -> set[str]:
    """The names that a block reads or assigns, or stores to."""
    found: set[str] = set()
    for item in walk(block):
        found |= variables(item)
        found.update(targets(item))
    return found


# --- rewriting -------------------------------------------------------------------------------------------------------


def rebuilt(item: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An expression with `change` applied to each direct operand; the expression itself if nothing changes."""
    names = _CHILDREN[type(item)]
    is_same = True
    values: dict[str, Any] = {}
    for name in names:
        old = getattr(item, name)
        new: Any
        if isinstance(old, tuple):
            new = tuple(change(each) for each in old)
            is_same = is_same and all(a is b for a, b in zip(new, old))
        else:
            new = change(old)
            is_same = is_same and new is old
        values[name] = new
    if is_same:
        return item
    is_stated = isinstance(item, Call) and functions.row_of(item.function) is None
    for name in _FIELDS[type(item)]:
        if name not in values and (name != "type" or is_stated):  # else the type follows from the operands once more
            values[name] = getattr(item, name)
    return type(item)(**values)


def mapped(item: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """An expression with each subexpression replaced for which `change` returns another one, from the outside in. It
    isn't applied to the replacements."""
    found = change(item)
    return rebuilt(item, lambda operand: mapped(operand, change)) if found is None else found


def substituted(item: Expr, values: Mapping[str, Expr]) -> Expr:
    """An expression with variables replaced by expressions."""
    return mapped(item, lambda each: values.get(each.name) if isinstance(each, Var) else None)


def map_operands(item: Statement, change: Callable[[Expr], Expr]) -> None:
    """Replaces each expression directly in a statement, in place; its blocks stay as they are."""
    for name in _CHILDREN[type(item)]:
        old = getattr(item, name)
        if isinstance(old, tuple):
            setattr(item, name, tuple(change(each) for each in old))
        elif not isinstance(old, Scalar):
            setattr(item, name, change(old))


def rename_targets(item: Statement, renamed: Callable[[str], str]) -> None:
    """Renames the variables that a statement assigns (`targets`), in place."""
    if isinstance(item, Assign):
        item.targets = tuple([renamed(name) for name in item.targets])
    elif isinstance(item, Alloc):
        item.name = renamed(item.name)
    elif isinstance(item, For):
        item.index = renamed(item.index)


def map_block(block: Block, change: Callable[[Expr], Expr | None]) -> None:
    """Replaces subexpressions (see `mapped`) of all statements in a block, in place."""
    for item in walk(block):
        map_operands(item, lambda each: mapped(each, change))


def copied(block: Sequence[Statement]) -> Block:
    """A copy of the statements that can be changed independently."""
    result: Block = []
    for item in block:
        values = {name: getattr(item, name) for name in _FIELDS[type(item)]}
        for name in _BLOCKS.get(type(item), ()):
            values[name] = copied(values[name])
        result.append(type(item)(**values))
    return result

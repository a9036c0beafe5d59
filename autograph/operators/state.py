"""Reading and writing the variables of a converted function from outside.

The blocks of a converted function share variables through closure cells (names) or reach them through objects (paths
such as ``self.h``). A `Slot` is one such place. An unbound variable is an empty cell; `UNSET` stands for that here and
never leaves this package.
"""

from __future__ import annotations

import ast
import builtins
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import lru_cache
from types import CellType, FunctionType
from typing import Any

import numpy as np

from autograph.errors import is_own_file
from autograph.operators.attributes import attributes_of, identity
from autograph.operators.makeup import is_of_makeup
from autograph.operators.restored_numbers import note_number
from runtime.ops.staged_number import StagedNumber
from runtime.ops.strings.staged_string import StandsForString
from runtime.python_text import python_ast
from runtime.staged_array import WritableArray
from runtime.staged_list import StagedList
from runtime.tensor import SymbolicTensor, Tensor
from runtime.tensor_array import TensorArray
from runtime.variable import Variable


class _Unset:
    def __repr__(self) -> str:
        return "<unset>"


UNSET: Any = _Unset()

Block = Callable[..., Any]


class Slot:
    """A place that holds a variable.

    label      how the user spells it
    covered    whether every read of it is known to stand behind a flag, so that it may be left unset
    is_listed  whether others than its readers see if it is set: a key of a dictionary, which has a length
    """

    is_listed = False

    def __init__(self, label: str, covered: bool = False) -> None:
        self.label = label
        self.covered = covered

    @property
    def place(self) -> Any:
        """A key that two slots share exactly if they are the same variable, attribute or item."""
        return id(self)

    def get(self) -> Any:
        """The value, or UNSET."""
        raise NotImplementedError

    def set(self, value: Any) -> None:
        """Stores a value; UNSET unbinds the variable."""
        raise NotImplementedError


class CellSlot(Slot):
    """A local variable of the converted function."""

    def __init__(self, label: str, cell: CellType, covered: bool = False) -> None:
        super().__init__(label, covered)
        self.cell = cell

    @property
    def place(self) -> Any:
        return id(self.cell)

    def get(self) -> Any:
        return read_cell(self.cell)

    def set(self, value: Any) -> None:
        write_cell(self.cell, value)


class GlobalSlot(Slot):
    """A variable of the module."""

    def __init__(self, label: str, namespace: dict[str, Any]) -> None:
        super().__init__(label)
        self.namespace = namespace

    @property
    def place(self) -> Any:
        return id(self.namespace), self.label

    def get(self) -> Any:
        return self.namespace.get(self.label, UNSET)

    def set(self, value: Any) -> None:
        if value is UNSET:
            self.namespace.pop(self.label, None)
        else:
            self.namespace[self.label] = value


class PathSlot(Slot):
    """An attribute or an item of an object."""

    def __init__(self, label: str, owner: Callable[[], Any], kind: str, key: Callable[[], Any]) -> None:
        super().__init__(label)
        self.owner = owner
        self.kind = kind
        self.key = key
        self.is_listed = kind == "["

    @property
    def place(self) -> Any:
        try:
            owner = self.owner()
        except (AttributeError, LookupError):
            return id(self)
        if self.kind == "." and attributes_of(owner) is not None:
            return identity(owner), self.key()
        return id(owner), text_of(self.key())

    @property
    def is_method(self) -> bool:
        """Whether a property or ``__getitem__`` or ``__setitem__`` of the user's class stands there."""
        try:
            owner, kind = self.owner(), type(self.owner())
            if self.kind == "[" and isinstance(owner, (dict, list)):
                return False
            names = [self.key()] if self.kind == "." else ["__getitem__", "__setitem__"]
        except (AttributeError, LookupError):
            return False
        members = [getattr(kind, name, None) for name in names]
        functions = [each.fget if type(each) is property else each for each in members]
        return any(type(each) is FunctionType and _is_users(each) for each in functions)

    def is_in_tensor(self) -> bool:
        """Whether this is an element of what can't hold a tensor of a trace: setting it is an error."""
        try:
            return self.kind == "[" and isinstance(self.owner(), _WITHOUT_TENSORS)
        except (AttributeError, LookupError):
            return False

    def is_of_makeup(self) -> bool:
        """Whether this is part of what an object is made of: exchanging that is refused."""
        try:
            return self.kind == "." and is_of_makeup(self.owner(), self.key())
        except (AttributeError, LookupError):
            return False

    def is_in_staged_list(self) -> bool:
        """Whether this is an element of a staged list, whose contents are state as a whole, or in one."""
        try:
            return isinstance(self.owner(), _STAGED) and self.kind == "["
        except (AttributeError, LookupError) as error:
            return isinstance(error, _InStagedList)

    def is_no_place(self) -> bool:
        """Whether this is an item that a list of Python's doesn't have, or a part of one, or at an index that is known
        only when the program runs; or in a dictionary at a string that isn't known, or at a member of an enum, for
        which there may be a choice later.

        There is nothing to set; a list or dictionary that gets the item has changed as a whole.
        """
        try:
            owner, key = self.owner(), self.key()
        except (AttributeError, LookupError) as error:
            return isinstance(error, IndexError)
        if self.kind == "[" and isinstance(owner, dict):
            return isinstance(key, (Enum, StandsForString)) or hasattr(type(key), "__tf_flatten__")
        if self.kind != "[" or type(owner) is not list:
            return False
        if type(key) is int:
            return not -len(owner) <= key < len(owner)
        return isinstance(key, (SymbolicTensor, StagedNumber, Variable))

    def fixed(self) -> PathSlot:
        """The place where the path leads now, for good."""
        try:
            owner, key = self.owner(), self.key()
        except (AttributeError, LookupError):
            return self
        return PathSlot(self.label, lambda: owner, self.kind, lambda: key)

    def get(self) -> Any:
        try:
            owner, key = self.owner(), self.key()
            return getattr(owner, key) if self.kind == "." else _base(owner).__getitem__(owner, key)
        except (AttributeError, LookupError):
            return UNSET

    def set(self, value: Any) -> None:
        owner, key = self.owner(), self.key()
        if self.kind == ".":
            if value is not UNSET:
                note_number(owner, key, value)
                setattr(owner, key, value)
            elif hasattr(owner, key):
                delattr(owner, key)
        elif value is not UNSET:
            _base(owner).__setitem__(owner, key, value)
        elif key in owner:
            _base(owner).__delitem__(owner, key)


_STAGED = (StagedList, WritableArray)
_WITHOUT_TENSORS = (Tensor, TensorArray, Variable, np.ndarray, array, bytearray)


def _base(owner: Any) -> Any:
    """The class whose methods reach an object's items themselves: of a dictionary or list, Python's own."""
    return next((kind for kind in (dict, list) if isinstance(owner, kind)), type(owner))


def _is_users(function: FunctionType) -> bool:
    filename, root = function.__code__.co_filename, function.__module__.partition(".")[0]
    return not is_own_file(filename) and "site-packages" not in filename and root not in sys.stdlib_module_names


class LocalSlot(Slot):
    """A variable of an operator's own, such as the index of a loop over a tensor."""

    def __init__(self, label: str, value: Any) -> None:
        super().__init__(label)
        self.value = value

    def get(self) -> Any:
        return self.value

    def set(self, value: Any) -> None:
        self.value = value


def read_cell(cell: CellType) -> Any:
    """A cell's content, or UNSET."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET


def write_cell(cell: CellType, value: Any) -> None:
    """Fills a cell, or empties it when the value is UNSET."""
    if value is not UNSET:
        cell.cell_contents = value
    elif read_cell(cell) is not UNSET:
        del cell.cell_contents


def slots(names: Iterable[str], blocks: Sequence[Block]) -> list[Slot]:
    """The places that ``names`` stand for in the functions that use them.

    A name may start with ``?`` (see `Slot.covered`); one that no block mentions is left out. So is what methods of the
    user's make (items, properties): what these change are attributes, which the frames of the blocks know.
    """
    found = []
    for name in names:
        covered = name.startswith("?")
        slot = _slot(name.lstrip("?"), blocks, covered)
        is_left_out = isinstance(slot, PathSlot) and (slot.is_method or slot.is_in_tensor() or slot.is_of_makeup())
        if slot is not None and not is_left_out:
            found.append(slot)
    return found


def after_block(slot: Slot, before: Any) -> Any:
    """A slot's value after a block; of an element of a list that has become staged in it, the one from before.

    Such a list's contents are state as a whole.
    """
    return before if isinstance(slot, PathSlot) and slot.is_in_staged_list() else slot.get()


def text_of(value: Any) -> str:
    """What tells a key or a value from others: its text. A class of the program's may fail to give one in a trace."""
    try:
        return repr(value)
    except Exception:
        return f"{type(value).__name__} {id(value)}"


def single_places(state: Iterable[Slot]) -> list[Slot]:
    """The slots that are state by themselves: no elements of staged lists, and none that a list doesn't have."""
    return [
        slot for slot in state if not (isinstance(slot, PathSlot) and (slot.is_in_staged_list() or slot.is_no_place()))
    ]


def cells(blocks: Sequence[Block]) -> dict[str, CellType]:
    """Every variable that functions share with the ones around them, by name."""
    found: dict[str, CellType] = {}
    for block in blocks:
        for name, cell in zip(block.__code__.co_freevars, block.__closure__ or ()):
            found.setdefault(name, cell)
    return found


def _slot(name: str, blocks: Sequence[Block], covered: bool) -> Slot | None:
    root, steps = _parsed(name)
    if steps:
        return _path_slot(name, root, steps, blocks)
    for block in blocks:
        code = block.__code__
        if name in code.co_freevars and block.__closure__ is not None:
            return CellSlot(name, block.__closure__[code.co_freevars.index(name)], covered)
    for block in blocks:
        if name in block.__code__.co_names:
            return GlobalSlot(name, block.__globals__)
    return None


def _path_slot(name: str, root: str, steps: tuple[Any, ...], blocks: Sequence[Block]) -> Slot:
    def lookup(variable: str) -> Any:
        for block in blocks:
            code = block.__code__
            if variable in code.co_freevars and block.__closure__ is not None:
                value = read_cell(block.__closure__[code.co_freevars.index(variable)])
                if value is not UNSET:
                    return value
        namespace = blocks[0].__globals__
        if variable in namespace:
            return namespace[variable]
        value = getattr(builtins, variable, UNSET)
        if value is UNSET:
            raise LookupError(variable)
        return value

    def walk(root: str, steps: tuple[Any, ...]) -> Any:
        value = lookup(root)
        for kind, key in steps:
            if kind == "[" and isinstance(value, _STAGED):
                raise _InStagedList
            value = getattr(value, key) if kind == "." else value[key_of(key)]
        return value

    def key_of(key: Any) -> Any:
        return walk(*key.value) if isinstance(key, _Reference) else key

    kind, last = steps[-1]
    return PathSlot(name, lambda: walk(root, steps[:-1]), kind, lambda: key_of(last))


class _InStagedList(LookupError):
    """A path goes through an element of a staged list, which is no place: reading it gives a container made anew."""


class _Reference:
    """A subscript key that is itself a path: (root, steps)."""

    def __init__(self, value: tuple[str, tuple[Any, ...]]) -> None:
        self.value = value


@lru_cache(maxsize=4096)
def _parsed(path: str) -> tuple[str, tuple[Any, ...]]:
    if path.isidentifier():
        return path, ()
    return _steps(python_ast(path, mode="eval").body)


def _steps(node: ast.expr) -> tuple[str, tuple[Any, ...]]:
    if isinstance(node, ast.Name):
        return node.id, ()
    if isinstance(node, ast.Attribute):
        root, steps = _steps(node.value)
        return root, (*steps, (".", node.attr))
    if isinstance(node, ast.Subscript):
        root, steps = _steps(node.value)
        return root, (*steps, ("[", _key(node.slice)))
    raise ValueError(f"not a path: {ast.unparse(node)}")


def _key(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return ast.literal_eval(node)
    return _Reference(_steps(node))

"""Qualified names: the places in a program that state can live in.

A path is a variable name followed by attributes and subscripts whose keys are constants or paths again. Other
expressions (``f().x``, ``x[i + 1]``) name no fixed place and have no path.

Example::

    >>> path = Path.parse("self.cells[i]['h']")
    >>> str(path), path.root, sorted(path.names)
    ("self.cells[i]['h']", 'self', ['i', 'self'])
    >>> [str(p) for p in path.prefixes]
    ['self', 'self.cells', 'self.cells[i]']
"""

from __future__ import annotations

from typing import Any

import gast

from runtime.python_text import python_ast

# A step down from a value: an attribute name, or a subscript key (a constant or a path).
Step = tuple[str, Any]

_CONSTANT_KEYS = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))


class Path:
    """A variable name followed by zero or more attribute or subscript steps.

    Immutable and hashable; two paths are equal when they read the same as text. ``str(path)`` is valid Python.
    """

    __slots__ = ("_hash", "_text", "root", "steps")

    root: str
    steps: tuple[Step, ...]

    def __init__(self, root: str, steps: tuple[Step, ...] = ()) -> None:
        self.root = root
        self.steps = steps
        self._text = root + "".join(_step_text(kind, key) for kind, key in steps)
        self._hash = hash(self._text)

    @staticmethod
    def of(node: Any) -> Path | None:
        """The path that an expression node spells, or None when it isn't one."""
        steps: list[Step] = []
        while True:
            if isinstance(node, gast.Name):
                return Path(node.id, tuple(reversed(steps)))
            if isinstance(node, gast.Attribute):
                steps.append((".", node.attr))
            elif isinstance(node, gast.Subscript):
                key = _key_of(node.slice)
                if key is None:
                    return None
                steps.append(("[", key[0]))
            else:
                return None
            node = node.value

    @staticmethod
    def parse(text: str) -> Path:
        """The path spelled by ``text``; raises ValueError when the text isn't a path."""
        try:
            path = Path.of(gast.ast_to_gast(python_ast(text, mode="eval")).body)
        except SyntaxError as error:
            raise ValueError(f"not a path: {text!r}") from error
        if path is None:
            raise ValueError(f"not a path: {text!r} (only names, attributes, and subscripts by constants or paths are)")
        return path

    @property
    def is_name(self) -> bool:
        """Whether this is a bare variable name."""
        return not self.steps

    @property
    def parent(self) -> Path | None:
        """The path one step up, or None for a bare name."""
        return Path(self.root, self.steps[:-1]) if self.steps else None

    @property
    def prefixes(self) -> tuple[Path, ...]:
        """The proper prefixes, shortest (the bare root) first."""
        return tuple(Path(self.root, self.steps[:count]) for count in range(len(self.steps)))

    @property
    def names(self) -> frozenset[str]:
        """Every variable that must be read to reach the place: the root and the names in subscript keys."""
        found = {self.root}
        for kind, key in self.steps:
            if kind == "[" and isinstance(key, Path):
                found |= key.names
        return frozenset(found)

    def starts_with(self, other: Path) -> bool:
        """Whether ``other`` is this path or one of its prefixes."""
        return self.root == other.root and self.steps[: len(other.steps)] == other.steps

    def to_node(self, ctx: Any = None) -> Any:
        """A new gast expression for the path; ``ctx`` (Load by default) is the context of the outermost node."""
        node: Any = gast.Name(self.root, gast.Load(), None, None)
        for kind, key in self.steps:
            if kind == ".":
                node = gast.Attribute(node, key, gast.Load())
            else:
                node = gast.Subscript(
                    node, key.to_node() if isinstance(key, Path) else _constant_node(key), gast.Load()
                )
        if ctx is not None:
            node.ctx = ctx
        return node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and self._text == other._text

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: Path) -> bool:
        return self._text < other._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Path.parse({self._text!r})"


def _step_text(kind: str, key: Any) -> str:
    if kind == ".":
        return "." + key
    if isinstance(key, Path):
        return f"[{key}]"
    return "[...]" if key is Ellipsis else f"[{key!r}]"


def _key_of(node: Any) -> tuple[Any] | None:
    """The subscript key in a 1-tuple (a key may itself be None), or None when the key has no fixed spelling."""
    if isinstance(node, gast.Constant):
        return (node.value,) if isinstance(node.value, _CONSTANT_KEYS) else None
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub) and isinstance(node.operand, gast.Constant):
        value = node.operand.value
        # A boolean is excluded because -True is spelled differently from the -1 that it equals.
        return (-value,) if isinstance(value, int) and not isinstance(value, bool) else None
    path = Path.of(node)
    return None if path is None else (path,)


def _constant_node(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        return gast.UnaryOp(gast.USub(), gast.Constant(-value, None))
    return gast.Constant(value, None)

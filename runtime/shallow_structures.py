"""Structures compared and flattened down to where another, shallower one ends; leaves with the paths that reach them.

>>> flatten_up_to([1, 2], [[3], {"a": 4}])
[[3], {'a': 4}]
>>> flatten_with_tuple_paths({"a": [1, 2]})
[(('a', 0), 1), (('a', 1), 2)]

Ragged tensors and other composites are leaves, unless `expand_composites` is True, as in `runtime.composites`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from runtime import composites, nest

Path = tuple[Any, ...]


def _is_nested(structure: Any, expand_composites: bool) -> bool:
    return nest.is_nested(structure) if expand_composites else composites.is_nested(structure)


def sorted_items(structure: Any) -> Iterator[tuple[Any, Any]]:
    """The direct parts of a structure, each with its key, field or index. Raises TypeError for a leaf."""
    if isinstance(structure, Mapping):
        for key in nest.sorted_keys(structure):
            yield key, structure[key]
    elif nest.is_namedtuple(type(structure)):
        yield from zip(structure._fields, structure)
    else:
        names = nest.field_names(type(structure))
        parts = nest.children(structure)
        yield from zip(range(len(parts)) if names is None else names, parts)


def values(structure: Any) -> Iterator[Any]:
    """The direct parts of a structure. Raises TypeError for a leaf."""
    return (value for _, value in sorted_items(structure))


def is_mapping(structure: Any) -> bool:
    """Whether a value is a mapping."""
    return isinstance(structure, Mapping)


def is_namedtuple(structure: Any, strict: bool = False) -> bool:
    """Whether a value is a named tuple; with `strict`, one of a class that inherits from `tuple` alone."""
    kind = type(structure)
    return nest.is_namedtuple(kind) and (not strict or kind.__base__ is tuple)


def _paths(
    shallow: Any, structure: Any, is_nested: Callable[[Any], bool], path: Path = ()
) -> Iterator[tuple[Path, Any]]:
    if not is_nested(shallow):
        yield path, structure
        return
    parts = dict(sorted_items(structure)) if isinstance(structure, Mapping) else list(values(structure))
    for place, (key, part) in enumerate(sorted_items(shallow)):
        yield from _paths(part, parts[key if isinstance(parts, dict) else place], is_nested, (*path, key))


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[Path, Any]]:
    """The leaves, in order, each after the keys, fields and indices that reach it."""
    return list(_paths(structure, structure, lambda part: _is_nested(part, expand_composites)))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """The leaves, in order, each after the text that reaches it."""
    found = flatten_with_tuple_paths(structure, expand_composites)
    return [(separator.join(map(str, path)), leaf) for path, leaf in found]


def yield_flat_paths(structure: Any, expand_composites: bool = False) -> Iterator[Path]:
    """The paths of the leaves, in order."""
    return (path for path, _ in flatten_with_tuple_paths(structure, expand_composites))


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **options: Any) -> Any:
    """`map_structure`, whose function also gets the path of the leaves, first."""
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **options)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **options: Any) -> Any:
    """`map_structure`, whose function also gets the text that reaches the leaves ("a/0"), first."""

    def with_text(path: Path, *leaves: Any) -> Any:
        return func("/".join(map(str, path)), *leaves)

    return map_structure_with_tuple_paths(with_text, *structure, **options)


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises TypeError or ValueError unless `input_tree` has the structure of `shallow_tree`, as deep as that goes."""
    if not _is_nested(shallow_tree, expand_composites):
        return
    if not _is_nested(input_tree, expand_composites):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input has type: "
            f"'{type(input_tree).__name__}'."
        )
    if check_types and not _same_types(shallow_tree, input_tree):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"'{type(input_tree).__name__}', while shallow structure has type '{type(shallow_tree).__name__}'."
        )
    shallow, deep = dict(enumerate(values(shallow_tree))), dict(enumerate(values(input_tree)))
    if isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping):
        shallow, deep = dict(shallow_tree), dict(input_tree)
    if len(shallow) != len(deep):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(deep)}, while shallow structure has length {len(shallow)}."
        )
    for key, part in shallow.items():
        if key not in deep:
            raise ValueError(
                "The two structures don't have the same keys. Input structure has keys "
                f"{list(deep)}, while shallow structure has keys {list(shallow)}."
            )
        assert_shallow_structure(part, deep[key], check_types, expand_composites)


def _same_types(one: Any, other: Any) -> bool:
    if composites.is_composite(one) or composites.is_composite(other):
        return nest.same_kind(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return True
    if is_namedtuple(one) and is_namedtuple(other):
        return nest.same_kind(one, other)
    return isinstance(other, type(one)) or isinstance(one, type(other))


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """The parts of `input_tree` where `shallow_tree` has leaves.

    Raises TypeError or ValueError where the structures differ before that.
    """
    found = flatten_with_tuple_paths_up_to(shallow_tree, input_tree, check_types, expand_composites)
    return [part for _, part in found]


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[tuple[Path, Any]]:
    """`flatten_up_to` with the path of each part."""
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    return list(_paths(shallow_tree, input_tree, lambda part: _is_nested(part, expand_composites)))


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """func applied to the parts of the inputs where `shallow_tree` has leaves, in the shape of that.

    Raises TypeError or ValueError where the structures differ before that.
    """
    return map_structure_with_tuple_paths_up_to(shallow_tree, lambda _, *parts: func(*parts), *inputs, **options)


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any,
    func: Callable[..., Any],
    *inputs: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Any:
    """`map_structure_up_to`, whose function also gets the path of the parts, first."""
    if not inputs:
        raise ValueError("Argument `inputs` is empty. Cannot map over no sequences.")
    found = [flatten_with_tuple_paths_up_to(shallow_tree, each, check_types, expand_composites) for each in inputs]
    mapped = [func(column[0][0], *[part for _, part in column]) for column in zip(*found)]
    return composites.pack_sequence_as(shallow_tree, mapped, expand_composites)


def map_structure_with_path_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **options: Any
) -> Any:  # fmt: skip
    """`map_structure_up_to`, whose function also gets the text that reaches the parts ("a/0"), first."""

    def with_text(path: Path, *parts: Any) -> Any:
        return func("/".join(map(str, path)), *parts)

    return map_structure_with_tuple_paths_up_to(shallow_tree, with_text, *inputs, **options)


def get_traverse_shallow_structure(
    traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False
) -> Any:
    """How far to look into a structure: one of its shape with True for leaves, and False where `traverse_fn` stops.

    traverse_fn(part): whether to look into a part, or a structure of booleans, one for each of the part's own.
    Raises TypeError for anything else that it returns.
    """
    wanted = traverse_fn(structure)
    if not _is_nested(structure, expand_composites):
        if not isinstance(wanted, bool):
            raise TypeError(f"traverse_fn returned {wanted!r}, but a leaf takes True or False: {structure!r}")
        return wanted
    if isinstance(wanted, bool):
        if not wanted:
            return False
        flags: Iterable[Any] = [True] * len(nest.children(structure))
    elif _is_nested(wanted, expand_composites):
        flags = list(values(wanted))
    else:
        raise TypeError(f"traverse_fn returned {wanted!r}: neither a boolean nor a structure of them")
    made = []
    for flag, part in zip(flags, values(structure)):
        if not isinstance(flag, bool):
            raise TypeError(f"traverse_fn didn't return a depth=1 structure of booleans: {wanted!r}")
        made.append(get_traverse_shallow_structure(traverse_fn, part, expand_composites) if flag else False)
    return nest.rebuild(structure, made)


def list_to_tuple(structure: Any) -> Any:
    """The structure with tuples for its lists."""
    if isinstance(structure, list):
        return tuple(map(list_to_tuple, structure))
    if not composites.is_nested(structure):
        return structure
    return nest.rebuild(structure, [list_to_tuple(part) for part in nest.children(structure)])

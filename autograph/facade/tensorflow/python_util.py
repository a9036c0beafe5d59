"""`tensorflow.python.util`: nested structures, signatures and decorators, as libraries import them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any

from runtime import composites, nest, shallow_structures, type_specs
from runtime.signatures import full_arg_spec
from runtime.tensor import TensorReference

_logger = logging.getLogger("tensorflow")
_silent = 0


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A block in which nothing is said of deprecated names."""
    global _silent
    _silent += 1
    try:
        yield
    finally:
        _silent -= 1


def _said_once(
    function: Callable[..., Any], is_used: Callable[[dict[str, Any]], bool], text: str, warn_once: bool
) -> Callable[..., Any]:
    """A function that logs a warning when it is called with what is deprecated."""
    signature = inspect.signature(function)
    said: list[bool] = []

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _silent and not (said and warn_once):
            with contextlib.suppress(TypeError):  # the call itself raises it, in the function's own words
                if is_used(signature.bind(*args, **kwargs).arguments):
                    said.append(True)
                    _logger.warning("From %s: %s", getattr(function, "__qualname__", function), text)
        return function(*args, **kwargs)

    return call


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[..., Any]:
    """A decorator: the function logs a warning when it is called. A class, when an instance is made."""
    text = f"deprecated, will be removed {f'after {date}' if date else 'in a future version'}. {instructions}"

    def decorate(what: Any) -> Any:
        if isinstance(what, type):
            what.__init__ = _said_once(what.__init__, lambda _: True, text, warn_once)  # type: ignore[misc]
            return what
        return _said_once(what, lambda _: True, text, warn_once)

    return decorate


def deprecated_args(date: str | None, instructions: str, *names: Any, **options: Any) -> Callable[..., Any]:
    """A decorator: the function logs a warning when it gets one of the arguments; (name, value): another value."""
    harmless = {name[0]: name[1] for name in names if isinstance(name, tuple)}
    known = {name for name in names if isinstance(name, str)} | set(harmless)
    text = f"the arguments {sorted(known)} are deprecated. {instructions}"

    def is_used(given: dict[str, Any]) -> bool:
        return any(name in given and given[name] is not harmless.get(name, _NOTHING) for name in known)

    return lambda function: _said_once(function, is_used, text, options.get("warn_once", True))


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[..., Any]:
    """A decorator: the function logs a warning when it gets one of the values."""
    text = f"the values {deprecated_kwargs} are deprecated. {instructions}"

    def is_used(given: dict[str, Any]) -> bool:
        return any(name in given and given[name] is value for name, value in deprecated_kwargs.items())

    return lambda function: _said_once(function, is_used, text, warn_once)


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """A function that does what another one does, and logs a warning of its old name."""
    return deprecated(None, f"The name {deprecated_name} is deprecated: use {name}.", warn_once)(func_or_class)


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument under its new or its old name. Raises ValueError for both."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return old_value


_NOTHING = object()


def make_decorator(target: Any, decorator_func: Any, decorator_name: str | None = None, *rest: Any, **more: Any) -> Any:
    """A function that stands for another one, with its name and signature."""
    return functools.update_wrapper(decorator_func, target)


def unwrap(maybe_decorated: Any) -> tuple[list[Any], Any]:
    """The functions that are wrapped around one, from the outside, and that one."""
    around = []
    while hasattr(maybe_decorated, "__wrapped__"):
        around.append(maybe_decorated)
        maybe_decorated = maybe_decorated.__wrapped__
    return around, maybe_decorated


def export(*names: str, **options: Any) -> Callable[[Any], Any]:
    """A decorator that leaves everything as it is: names are published by TensorFlow's own build alone."""
    return lambda what: what


MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.python.util.deprecation": {
        "deprecated": deprecated,
        "deprecated_alias": deprecated_alias,
        "deprecated_arg_values": deprecated_arg_values,
        "deprecated_args": deprecated_args,
        "deprecated_argument_lookup": deprecated_argument_lookup,
        "deprecated_endpoints": export,
        # TensorBoard asks for silence around each file it reads.
        "silence": silence,
    },
    "tensorflow.python.util.nest": {
        "_is_namedtuple": shallow_structures.is_namedtuple,
        "_sequence_like": nest.rebuild,
        "_yield_sorted_items": shallow_structures.sorted_items,
        "_yield_value": shallow_structures.values,
        "assert_same_structure": composites.assert_same_structure,
        "assert_shallow_structure": shallow_structures.assert_shallow_structure,
        "flatten": composites.flatten,
        "flatten_up_to": shallow_structures.flatten_up_to,
        "flatten_with_joined_string_paths": shallow_structures.flatten_with_joined_string_paths,
        "flatten_with_tuple_paths": shallow_structures.flatten_with_tuple_paths,
        "flatten_with_tuple_paths_up_to": shallow_structures.flatten_with_tuple_paths_up_to,
        "get_traverse_shallow_structure": shallow_structures.get_traverse_shallow_structure,
        "is_mapping": shallow_structures.is_mapping,
        "is_namedtuple": shallow_structures.is_namedtuple,
        "is_nested": composites.is_nested,
        "is_nested_or_composite": nest.is_nested,
        "is_sequence": composites.is_nested,
        "list_to_tuple": shallow_structures.list_to_tuple,
        "map_structure": composites.map_structure,
        "map_structure_up_to": shallow_structures.map_structure_up_to,
        "map_structure_with_paths": shallow_structures.map_structure_with_paths,
        "map_structure_with_path_up_to": shallow_structures.map_structure_with_path_up_to,
        "map_structure_with_tuple_paths": shallow_structures.map_structure_with_tuple_paths,
        "map_structure_with_tuple_paths_up_to": shallow_structures.map_structure_with_tuple_paths_up_to,
        "pack_sequence_as": composites.pack_sequence_as,
        "yield_flat_paths": shallow_structures.yield_flat_paths,
    },
    "tensorflow.python.util.object_identity": {"Reference": TensorReference},
    "tensorflow.python.util.tf_contextlib": {"contextmanager": contextlib.contextmanager},
    "tensorflow.python.util.tf_decorator": {"make_decorator": make_decorator, "unwrap": unwrap},
    "tensorflow.python.util.tf_export": {"keras_export": export, "tf_export": export},
    "tensorflow.python.util.tf_inspect": {
        **{name: getattr(inspect, name) for name in (
            "Parameter", "Signature", "currentframe", "getdoc", "getfile", "getmembers", "getmodule", "getmro",
            "getsource", "isabstract", "isclass", "isfunction", "isgenerator", "ismethod", "ismodule", "isroutine",
            "signature", "stack",
        )},
        "_inspect": inspect,
        "getfullargspec": full_arg_spec,
    },
    "tensorflow.python.util.variable_utils": {
        "convert_variables_to_tensors": type_specs.convert_variables_to_tensors
    },
}  # fmt: skip

"""The arguments of a call of a concrete function: which tensors and variables they give, and whether they fit."""

from __future__ import annotations

from typing import Any

from autograph.function.function_type import trace_type_of, type_text
from autograph.function.signature import VariableArgument, is_tensor_like, key_of_call, recalled
from runtime import composites, nest
from runtime.errors import InvalidArgumentError
from runtime.extension_types.values import ExtensionType
from runtime.ops.convert import convert_to_tensor
from runtime.tensor import Tensor


class IncompatibleArgumentError(InvalidArgumentError, TypeError):
    """A concrete function was called with a tensor of another dtype or shape than it was traced for."""


class _Misfit(Exception):
    """Arguments that don't fit one way of calling a concrete function."""


def is_array(value: Any) -> bool:
    """Whether a value is an array or converts itself to a tensor, as variables do."""
    return hasattr(value, "__array__") or hasattr(type(value), "__tf_tensor__")


def serves(traced: Any, value: Any) -> bool:
    """Whether a Python value counts as the one that was traced."""
    own, other = trace_type_of(traced), trace_type_of(value)
    if own is not None and other is not None:
        return bool(own == other or other.is_subtype_of(own))
    return key_of_call((traced,), {}, []) == key_of_call((value,), {}, [])


def bind_call(concrete: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[list[Tensor], list[Any], Any]:
    """The tensors of a call, its variables in the order of the arguments, and its canonical (args, kwargs).

    The call gives either all arguments as the function takes them, or its tensors alone.
    """
    try:
        return _structured_call(concrete, args, kwargs)
    except _Misfit as structured:
        try:
            tensors = _flat_call(concrete, args, kwargs)
        except _Misfit as flat:
            raise TypeError(
                f"Binding inputs to {concrete.graph.name}{concrete.function_type} failed: {structured}. As a call with "
                f"its tensors alone it fails too: {flat}."
            ) from None
        return tensors, *_left_out(concrete)


def _left_out(concrete: Any) -> tuple[list[Any], Any]:
    """The traced variables and arguments, which a call with the tensors alone means."""
    variables = [a.get() for a in nest.flatten(concrete.arguments) if isinstance(a, VariableArgument)]
    return variables, nest.map_structure(recalled, concrete.arguments)


def _structured_call(concrete: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[list[Tensor], list[Any], Any]:
    """Arguments by position or by the parameters' names; Python values may be left out, or must be those traced."""
    traced, traced_kwargs = concrete.arguments
    if len(args) > len(traced):
        raise _Misfit(f"{len(args)} arguments were given, {len(traced)} were traced")
    places = [*map(concrete.parameters.name_of, range(len(traced)))]
    names = [*places, *sorted(traced_kwargs)]
    expected = dict(zip(names, [*traced, *[traced_kwargs[k] for k in sorted(traced_kwargs)]]))
    given = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in expected or name in given:
            raise _Misfit(f"got an unexpected argument '{name}'")
        given[name] = value
    tensors: list[Tensor] = []
    variables: list[Any] = []
    specs = iter(enumerate(concrete.argument_specs))
    for name, before in expected.items():
        _fit(concrete, name, before, given, specs, (tensors, variables))
    called = {name: given.get(name, nest.map_structure(recalled, before)) for name, before in expected.items()}
    return tensors, variables, (tuple([called[n] for n in places]), {k: called[k] for k in traced_kwargs})


def _fit(
    concrete: Any,
    name: str,
    before: Any,
    given: dict[str, Any],
    specs: Any,
    found: tuple[list[Tensor], list[Any]],
) -> None:
    """Adds the tensors and the variables of one argument to `found`."""
    tensors, variables = found
    leaves = nest.flatten(before)
    if name not in given:
        if any(map(is_tensor_like, leaves)):
            raise _Misfit(f"missing the argument '{name}' ({type_text(before)})")
        variables += [leaf.get() for leaf in leaves if isinstance(leaf, VariableArgument)]
        return
    now = given[name]
    if is_tensor_like(before):
        index, spec = next(specs)
        if not (isinstance(now, (Tensor, list, tuple, int, float, complex, str, bytes)) or is_array(now)):
            raise _Misfit(f"'{name}' must be a tensor, got {now!r}")
        tensors.append(_checked(concrete, index, spec, now))
        return
    try:
        now = composites.as_composite(now, before)
        nest.assert_same_structure(before, now)
    except (TypeError, ValueError):
        raise _Misfit(f"'{name}' doesn't have the structure of {type_text(before)}: {now!r}") from None
    for old, new in zip(leaves, nest.flatten(now)):
        if is_tensor_like(old):
            index, spec = next(specs)
            tensors.append(_checked(concrete, index, spec, new))
        elif isinstance(old, VariableArgument):
            if not old.looks_like(new):
                raise _Misfit(f"'{name}' must be a variable like {old.get()!r}, got {new!r}")
            variables.append(new)
        elif is_tensor_like(new) or not serves(recalled(old), new):
            raise _Misfit(f"can not cast {new!r} of '{name}' to Literal[{old!r}], which the trace has baked in")


def _flat_call(concrete: Any, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors alone, by position, then by name."""
    specs = concrete.argument_specs
    if any(isinstance(value, ExtensionType) for value in composites.flatten(list(args))):
        raise _Misfit("extension types aren't tensors")
    values = nest.flatten(list(args))
    if len(values) > len(specs) or any(not (isinstance(v, Tensor) or is_array(v)) for v in values):
        raise _Misfit(f"{len(specs)} tensors are needed, {len(values)} values were given")
    names = [spec.name for spec in specs]
    by_name = dict(zip(names, values))
    for name, value in kwargs.items():
        if name not in names or name in by_name:
            raise _Misfit(f"got an unexpected argument '{name}'")
        by_name[name] = value
    missing = [name for name in names if name not in by_name]
    if missing:
        raise _Misfit(f"missing {', '.join(map(repr, missing))}")
    return [_checked(concrete, index, spec, by_name[spec.name]) for index, spec in enumerate(specs)]


def _checked(concrete: Any, index: int, spec: Any, value: Any) -> Tensor:
    tensor = convert_to_tensor(value, dtype_hint=spec.dtype)
    if tensor.dtype is not spec.dtype:
        raise IncompatibleArgumentError(
            f"cannot compute {concrete.name} as input #{index}(zero-based) was expected to be a {spec.dtype.name} "
            f"tensor but is a {tensor.dtype.name} tensor [Op:{concrete.name}]"
        )
    if not spec.covers(tensor.dtype, tensor._shape):
        raise IncompatibleArgumentError(
            f"cannot compute {concrete.name} as input #{index}(zero-based), '{spec.name}', was expected to have shape "
            f"{spec.shape} but has shape {tensor.shape} [Op:{concrete.name}]"
        )
    return tensor

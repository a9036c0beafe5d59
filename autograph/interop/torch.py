"""`ag.interop.torch`: functions of ours in PyTorch's programs, with their derivatives of every order.

A call outside of `torch.compile` is an `autograd.Function`: its forward pass runs our compiled function under a tape of
ours, its backward pass asks the tape. Where the backward pass must have a derivative itself, it is a call of the
pullback, which is a program too. Within `torch.compile` a call is one custom operator, whatever the function, which
names the program by its number; the shapes of its results come from our type rules.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch

from autograph.interop.programs import Program, Programs, leaves, numbered, owned, stateless, with_leaves
from autograph.module import Module as OurModule
from runtime import dtypes
from runtime.autodiff.tape import GradientTape
from runtime.dtypes import as_dtype
from runtime.ops.numpy.protocol import from_dlpack
from runtime.spec import TensorSpec
from runtime.tensor import DeviceTensor, EagerTensor, eager, held_by
from runtime.variable import Variable

__all__ = ["Module", "wrap"]

_DTYPES = {
    torch.bool: dtypes.bool_,
    **{getattr(torch, name): as_dtype(name) for name in (
        "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    )},
}  # fmt: skip
_TORCH_DTYPES = {ours: theirs for theirs, ours in _DTYPES.items()}


# --- tensors ---------------------------------------------------------------------------------------------------------


def _ours(tensor: torch.Tensor) -> EagerTensor:
    """A tensor of ours in the same memory; of one with gaps between its elements, in a copy."""
    dtype = _our_dtype(tensor)
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if plain.device.type != "cpu":
        return from_dlpack(plain)  # type: ignore[return-value]
    if dtype is dtypes.bfloat16:  # which NumPy has under another name
        array = plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    else:
        array = plain.numpy()
    return EagerTensor(array if array.ndim else array[()], dtype)


def _our_dtype(tensor: torch.Tensor) -> Any:
    if tensor.layout is not torch.strided or tensor.dtype not in _DTYPES:
        raise TypeError(
            f"a wrapped function takes dense tensors of numbers, but got one of dtype {tensor.dtype} and layout "
            f"{tensor.layout}. Convert it before the call: x.to_dense(), x.dequantize()"
        )
    return _DTYPES[tensor.dtype]


def _theirs(
    results: Sequence[EagerTensor], others: Sequence[EagerTensor], held: Sequence[Any] = ()
) -> list[torch.Tensor]:
    """The results as PyTorch's tensors, in their memory, unless somebody else has that too: one of `others`, or of the
    arrays `held`."""
    taken = [held_by(other) for other in others if other.__class__ is EagerTensor]
    taken += held
    found = []
    for result in results:
        if result.dtype not in _TORCH_DTYPES:
            raise TypeError(f"PyTorch has no dtype for a result of dtype {result.dtype.name}; cast it: ag.cast(y, ...)")
        if result.__class__ is DeviceTensor:
            found.append(torch.from_dlpack(result))
            continue
        array = owned(held_by(result), taken)
        taken.append(array)
        if result.dtype is dtypes.bfloat16:
            found.append(torch.from_numpy(array.view(np.int16)).view(torch.bfloat16))
        else:
            found.append(torch.from_numpy(array))
    return found


def _chosen(values: Sequence[Any], are_chosen: Sequence[bool]) -> list[Any]:
    return [value for value, is_chosen in zip(values, are_chosen) if is_chosen]


def _spread(values: Sequence[Any], positions: Sequence[int], count: int) -> list[Any]:
    """The values at these positions, None at the others."""
    found: list[Any] = [None] * count
    for position, value in zip(positions, values):
        found[position] = value
    return found


def _rows_first(tensors: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], tuple[int | None, ...]]:
    """The tensors with their rows along the first axis, and where these have their rows now."""
    rows = [tensor if axis is None else tensor.movedim(axis, 0) for tensor, axis in zip(tensors, dims)]
    return rows, tuple(None if axis is None else 0 for axis in dims)


def _is_float(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


# --- calls outside of torch.compile ----------------------------------------------------------------------------------


class _Call:
    """What a call leaves for its caller and its backward pass: the structure of the results, and the tape."""

    def __init__(self, records: bool) -> None:
        self.records = records
        self.structure: Any = None
        self.tape: GradientTape | None = None
        self.sources: list[EagerTensor] = []
        self.results: list[EagerTensor] = []


class _Function(torch.autograd.Function):
    """A call of a program."""

    @staticmethod
    def forward(call: _Call, program: Program, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = [_ours(tensor) for tensor in tensors]
        if call.records:
            call.sources = [tensor for tensor in given if tensor.dtype.is_differentiable]
            with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
                tape.watch(call.sources)
                call.structure = program(given)
            call.tape, call.results = tape, leaves(call.structure)
        else:
            call.structure = program(given)
        return tuple(_theirs(leaves(call.structure), given, program.held()))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[torch.Tensor, ...]) -> None:
        ctx.call, ctx.program = inputs[:2]
        tensors = inputs[2:]
        ctx.count = len(tensors)
        ctx.are_floats = [_is_float(tensor) for tensor in output]
        # The tape reads the memory of both: PyTorch refuses a backward pass after a change of them.
        ctx.save_for_backward(*tensors, *output)
        ctx.save_for_forward(*tensors)
        ctx.mark_non_differentiable(*[tensor for tensor in output if not _is_float(tensor)])

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors[: ctx.count]
        wanted = tuple(i for i, needed in enumerate(ctx.needs_input_grad[2:]) if needed)
        arrived = _chosen(cotangents, ctx.are_floats)
        if ctx.call.tape is None or torch.is_grad_enabled():
            found: Sequence[Any] = _apply(ctx.program.pullback(wanted, len(arrived)), [*tensors, *arrived])
        else:
            found = _from_tape(ctx.call, tensors, wanted, arrived)
        return None, None, *_spread(found, wanted, ctx.count)

    @staticmethod
    def jvp(ctx: Any, _call: None, _program: None, *tangents: torch.Tensor | None) -> tuple[Any, ...]:
        moved = tuple(i for i, tangent in enumerate(tangents) if tangent is not None)
        given = [tangent for tangent in tangents if tangent is not None]
        pushed = iter(_apply(ctx.program.pushforward(moved), [*ctx.saved_tensors[: ctx.count], *given]))
        return tuple(next(pushed) if is_float else None for is_float in ctx.are_floats)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, call: _Call, program: Program, *tensors: torch.Tensor) -> tuple[Any, Any]:
        rows, axes = _rows_first(tensors, in_dims[2:])
        results = _Function.apply(call, program.over_rows(axes), *rows)
        return results, tuple(0 for _ in results)


# PyTorch asks for the signature in each call, and finds it here at once.
_Function.forward.__signature__ = inspect.signature(_Function.forward)  # type: ignore[attr-defined]


def _from_tape(
    call: _Call, tensors: Sequence[torch.Tensor], wanted: Sequence[int], arrived: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    assert call.tape is not None
    place = {position: i for i, position in enumerate(i for i, tensor in enumerate(tensors) if _is_float(tensor))}
    targets = [result for result in call.results if result.dtype.is_differentiable]
    seeds = [_ours(cotangent) for cotangent in arrived]
    found = call.tape.gradient(
        targets, [call.sources[place[position]] for position in wanted], seeds, unconnected_gradients="zero"
    )
    return _theirs(found, [*seeds, *call.sources, *call.results])


def _apply(program: Program, tensors: Sequence[torch.Tensor], call: _Call | None = None) -> tuple[torch.Tensor, ...]:
    call = call or _Call(_is_recorded(tensors))
    return _Function.apply(call, program, *tensors)


def _is_recorded(tensors: Sequence[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


# --- calls within torch.compile --------------------------------------------------------------------------------------


_traced = threading.local()  # results: the outline of those of the operator that was traced last, their order in it


@torch.library.custom_op("autograph::call", mutates_args=())
def _operator(number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    program, given = numbered(number), [_ours(tensor) for tensor in tensors]
    return _theirs(leaves(program(given)), given, program.held())


@_operator.register_fake
def _(number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    specs = [TensorSpec([int(n) for n in tensor.shape], _our_dtype(tensor)) for tensor in tensors]
    structure = numbered(number).types(specs)
    device = tensors[0].device if tensors else None
    numbers = with_leaves(structure, range(len(leaves(structure))))
    _traced.results = _outline(numbers, _is_number), _flatten(numbers, _is_number)
    found = []
    for spec in leaves(structure):
        shape = [torch.library.get_ctx().new_dynamic_size() if n is None else n for n in spec.shape]
        found.append(torch.empty(shape, dtype=_TORCH_DTYPES[spec.dtype], device=device))
    return found


def _setup_context(ctx: Any, inputs: tuple, output: list[torch.Tensor]) -> None:
    ctx.number, tensors = inputs
    ctx.count = len(tensors)
    ctx.are_floats = [_is_float(tensor) for tensor in output]
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, cotangents: list[torch.Tensor]) -> tuple[None, list[Any]]:
    tensors = ctx.saved_tensors
    wanted = tuple(i for i, tensor in enumerate(tensors) if _is_float(tensor))
    arrived = _chosen(cotangents, ctx.are_floats)
    found = _operator(numbered(ctx.number).pullback(wanted, len(arrived)).number, [*tensors, *arrived])
    return None, _spread(found, wanted, ctx.count)


def _rows(info: Any, in_dims: tuple, number: int, tensors: list[torch.Tensor]) -> tuple[Any, Any]:
    rows, axes = _rows_first(tensors, in_dims[1])
    results = _operator(numbered(number).over_rows(axes).number, rows)
    return results, [0 for _ in results]


_operator.register_autograd(_backward, setup_context=_setup_context)
_operator.register_vmap(_rows)


# --- structures ------------------------------------------------------------------------------------------------------
# An outline is a structure as a tuple: its kind, what the kind needs, the outlines of its parts. torch.compile follows
# what makes and reads it, and takes it for a constant.


def _is_number(value: Any) -> bool:
    return isinstance(value, int)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _outline(structure: Any, is_leaf: Callable[[Any], bool]) -> tuple:
    if is_leaf(structure):
        return ("tensor",)
    if isinstance(structure, dict):
        return ("dict", tuple(structure), tuple([_outline(part, is_leaf) for part in structure.values()]))
    if isinstance(structure, (list, tuple)):
        kind = "list" if isinstance(structure, list) else "tuple"
        make = type(structure) if hasattr(structure, "_fields") else None
        return (kind, make, tuple([_outline(part, is_leaf) for part in structure]))
    return ("value", structure, ())


def _flatten(structure: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """The leaves of a structure, in the order of its outline."""
    if is_leaf(structure):
        return [structure]
    if isinstance(structure, dict):
        return [leaf for part in structure.values() for leaf in _flatten(part, is_leaf)]
    if isinstance(structure, (list, tuple)):
        return [leaf for part in structure for leaf in _flatten(part, is_leaf)]
    return []


def _filled(outline: tuple, tensors: list[Any]) -> Any:
    """The structure with this outline; takes its tensors off the list."""
    if outline[0] == "tensor":
        return tensors.pop(0)
    kind, extra, parts = outline
    if kind == "value":
        return extra
    made = [_filled(part, tensors) for part in parts]
    if kind == "dict":
        return dict(zip(extra, made))
    if extra is not None:
        return extra(*made)
    return made if kind == "list" else tuple(made)


# --- the wrapper -----------------------------------------------------------------------------------------------------


class _Wrapped:
    """A function on PyTorch's tensors."""

    def __init__(self, function: Callable[..., Any], cast_inputs: torch.dtype | None) -> None:
        functools.update_wrapper(self, function)
        self._cast_inputs = cast_inputs
        self._name = getattr(function, "__name__", type(function).__name__)
        self._programs = Programs(function, self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outline, tensors = _outline((args, kwargs), _is_tensor), _flatten((args, kwargs), _is_tensor)
        if self._cast_inputs is not None:
            tensors = _cast_under_autocast(tensors, self._cast_inputs)
        if torch.compiler.is_compiling():
            found = _operator(_number(self, outline), tensors)
            results, order = _results()
            return _filled(results, [found[i] for i in order])
        call = _Call(_is_recorded(tensors))
        found = _apply(self.program(outline), tensors, call)
        return with_leaves(call.structure, found)

    def program(self, outline: tuple) -> Program:
        """The program for arguments of this outline."""
        try:
            hash(outline)
        except TypeError:
            raise TypeError(
                f"{self._name} got an argument that is neither a tensor of PyTorch, nor a list, tuple or dictionary of "
                "those, nor a value that can be a key of a dictionary. Arrays: torch.from_numpy(x)"
            ) from None
        return self._programs.of(outline, lambda tensors: _filled(outline, list(tensors)), _count(outline))


def _count(outline: tuple) -> int:
    return 1 if outline[0] == "tensor" else sum(map(_count, outline[2]))


def _cast_under_autocast(tensors: list[torch.Tensor], dtype: torch.dtype) -> list[torch.Tensor]:
    return [
        tensor.to(dtype) if tensor.is_floating_point() and torch.is_autocast_enabled(tensor.device.type) else tensor
        for tensor in tensors
    ]


@torch.compiler.assume_constant_result
def _number(wrapped: _Wrapped, outline: tuple) -> int:
    return wrapped.program(outline).number


@torch.compiler.assume_constant_result
def _results() -> tuple[tuple, list[int]]:
    return _traced.results


def wrap(function: Callable[..., Any], *, cast_inputs: torch.dtype | None = torch.float32) -> Callable[..., Any]:
    """`function`, which works on tensors of this project, as one on tensors of PyTorch.

    function: plain Python or an `ag.function`; loops may depend on data. It is traced and compiled for each combination
    of dtypes and shapes. Arguments and results are tensors, or lists, tuples, named tuples and dictionaries of them;
    other arguments are constants of the trace. Memory is shared, on the CPU and on GPUs; results that are constants,
    or arguments, are copied.
    cast_inputs: what floating-point arguments are cast to within `torch.autocast`; None: they stay.

    Works with `backward`, also twice, `torch.func.grad`, `vjp`, `jvp`, `vmap`, `torch.compile(fullgraph=True)`, and in
    several threads. Within `torch.compile` the backward pass runs the function once more.

    Raises TypeError for tensors that aren't dense or have a dtype that this project lacks.

    >>> square = wrap(lambda x: x * x)
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> square(x).backward(); x.grad
    tensor(6.)
    """
    return _Wrapped(function, cast_inputs)


class Module(torch.nn.Module):
    """A module of this project as one of PyTorch: its trainable variables are parameters, the others are buffers.

    Their names are the paths of attributes (`layers.0.w`). The parameters have the variables' values at first, in
    memory of their own; `update_variables` writes them back. What a call assigns goes to the buffers.

    module: has made its variables. cast_inputs: see `wrap`.

    Raises ValueError for a module without variables, and for a call that assigns a trainable variable.

    >>> dense = Module(ours)
    >>> optimizer = torch.optim.Adam(dense.parameters())
    """

    def __init__(self, module: OurModule, *, cast_inputs: torch.dtype | None = torch.float32) -> None:
        super().__init__()
        found = module._flatten(lambda value: isinstance(value, Variable), with_path=True)
        self._variables = {".".join(map(str, path)): variable for path, variable in found}
        if not self._variables:
            raise ValueError(
                f"{module.name} has no variables yet. A module that makes them in its first call needs one before: "
                "call it once"
            )
        self._trainable: set[str] = set()
        for name, variable in self._variables.items():
            *parents, last = name.split(".")
            owner: torch.nn.Module = self
            for parent in parents:
                if not hasattr(owner, parent):
                    owner.add_module(parent, torch.nn.Module())
                owner = getattr(owner, parent)
            (value,) = _theirs([eager(np.array(variable.current_array()), variable.dtype)], [])
            if variable.trainable and _is_float(value):
                self._trainable.add(name)
                owner.register_parameter(last, torch.nn.Parameter(value))
            else:
                owner.register_buffer(last, value)
        called: Any = module
        self._call = _Wrapped(stateless(called, list(self._variables.values())), cast_inputs)

    def _values(self) -> list[torch.Tensor]:
        found = []
        for name in self._variables:
            value: Any = self
            for part in name.split("."):
                value = getattr(value, part)
            found.append(value)
        return found

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's call, on PyTorch's tensors."""
        values = self._values()
        # Of buffers it gets copies: the backward pass reads these, and what the call assigns goes to the buffers.
        given = [v if name in self._trainable else v.clone() for name, v in zip(self._variables, values)]
        result, assigned = self._call(given, args, kwargs)
        with torch.no_grad():
            for name, old, new in zip(self._variables, values, assigned):
                if new is None:
                    continue
                if name in self._trainable:
                    raise ValueError(
                        f"The call assigns the trainable variable {name}, which is a parameter: only an optimizer "
                        "changes these. Make the variable with trainable=False"
                    )
                old.copy_(new)
        return result

    def update_variables(self) -> None:
        """Assigns the parameters and buffers to the variables that they stand for."""
        for variable, value in zip(self._variables.values(), self._values()):
            variable.assign(eager(owned(held_by(_ours(value)), [held_by(_ours(value))]), variable.dtype))

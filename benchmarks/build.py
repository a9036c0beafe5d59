"""Implementations from programs: what one library needs to be called with a workload's arguments at its best setting.

A program for ours or TensorFlow takes the library first, then the arguments; one for JAX or torch is made by a function
that takes the library. `arguments(quick)` gives NumPy arrays and scalars, which each library gets as its own tensors.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import autograph as ag
from benchmarks import peers
from benchmarks.harness import Build, Call

Arguments = Callable[[bool], Sequence[Any]]
Program = Callable[..., Any]  # (library, *arguments)
Make = Callable[[Any], Callable[..., Any]]  # library → function of the arguments

_jit: list[bool | None] = [True]  # steady times compile before the first run


@contextlib.contextmanager
def setting(jit_compile: bool | None) -> Iterator[None]:
    """Within it our functions are made with this `jit_compile`; None is what users have by default."""
    _jit.append(jit_compile)
    try:
        yield
    finally:
        _jit.pop()


def compiled(function: Callable[..., Any]) -> Any:
    """`ag.function` at the setting that is being measured."""
    return ag.function(function, jit_compile=_jit[-1])


def ours(program: Program, arguments: Arguments) -> Build:
    """A compiled function of ours."""

    def build(quick: bool) -> Call:
        function = compiled(lambda *given: program(ag, *given))
        given = [ag.constant(value) for value in arguments(quick)]
        return lambda: function(*given)

    return build


def tensorflow(program: Program, arguments: Arguments, xla: bool = False) -> Build:
    """`tf.function` of the same program."""

    def build(quick: bool) -> Call:
        tf = peers.load("tensorflow")

        @peers.tf_function(xla)
        def function(*given):
            return program(tf, *given)

        given = [tf.constant(value) for value in arguments(quick)]
        return lambda: function(*given)

    return build


def jax(make: Make, arguments: Arguments) -> Build:
    """`jax.jit` of a function."""

    def build(quick: bool) -> Call:
        library = peers.load("jax")
        function = library.jit(make(library))
        given = [library.numpy.asarray(value) for value in arguments(quick)]
        return lambda: library.block_until_ready(function(*given))

    return build


def torch(make: Make, arguments: Arguments, compile: bool = False) -> Build:
    """A function of torch tensors: eager, or through `torch.compile`."""

    def build(quick: bool) -> Call:
        library = peers.load("torch")
        function = make(library)
        if compile:
            function = library.compile(function)
        given = [library.from_numpy(np.asarray(value)) for value in arguments(quick)]
        return lambda: function(*given)

    return build


def numba(function: Callable[..., Any], arguments: Arguments, parallel: bool = False) -> Build:
    """A function of NumPy arrays and scalars, compiled by numba."""

    def build(quick: bool) -> Call:
        machine_code = peers.load("numba").njit(function, parallel=parallel)
        given = arguments(quick)
        return lambda: machine_code(*given)

    return build


def plain(function: Callable[..., Any], arguments: Arguments) -> Build:
    """A function of NumPy arrays and scalars, as it is."""

    def build(quick: bool) -> Call:
        given = arguments(quick)
        return lambda: function(*given)

    return build


def python(function: Callable[..., Any], arguments: Arguments) -> Build:
    """The same with plain Python numbers in lists: what its loops do best with."""

    def build(quick: bool) -> Call:
        given = [np.asarray(value).tolist() for value in arguments(quick)]
        return lambda: function(*given)

    return build


def gradient(program: Program, *sources: int) -> Program:
    """The program of ours or TensorFlow that differentiates `program` in the arguments at these positions."""

    def differentiated(library: Any, *given: Any) -> Any:
        watched = [given[index] for index in sources]
        with library.GradientTape() as tape:
            tape.watch(watched)
            result = program(library, *given)
        return tape.gradient(result, watched)

    return differentiated


def jax_gradient(make: Make, *sources: int) -> Make:
    """The same for JAX."""
    return lambda library: library.grad(make(library), argnums=sources)


def torch_gradient(make: Make, *sources: int) -> Make:
    """The same for torch's autograd."""

    def make_gradient(library: Any) -> Callable[..., Any]:
        function = make(library)

        def differentiated(*given: Any) -> Any:
            leaves = [value.detach() for value in given]
            for index in sources:
                leaves[index].requires_grad_()
            return library.autograd.grad(function(*leaves), [leaves[index] for index in sources])

        return differentiated

    return make_gradient

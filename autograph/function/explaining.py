"""`f.explain(*args)`: how the program for some arguments runs, as text or page (see `runtime.engine.explain`)."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograph.function.concrete import ConcreteFunction
from autograph.function.signature import key_of_call
from runtime import profiling
from runtime.context import placing
from runtime.engine import settings
from runtime.engine.executable import Executable
from runtime.engine.explain import Report, Section, explain, note_interpretation
from runtime.engine.explain_page import to_page
from runtime.engine.explain_text import to_text
from runtime.engine.machine import machine
from runtime.engine.timeline import phase
from runtime.errors import describe_span
from runtime.graph.page import framed
from runtime.ops.random.stateful import drawn_apart
from runtime.tensor import EagerTensor

_RUNS = 5
_ENOUGH = 0.5  # seconds of runs after which the best one counts


class Explanation(str):
    """A text that shows itself as it is in an interactive session, and as a page in a notebook."""

    page: str

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return framed(self.page, self.count("\n"))


def explain_call(
    function: Any, args: tuple, kwargs: dict[str, Any], html: str | os.PathLike | None, measure: bool
) -> Explanation:
    """The result of `Function.explain`."""
    return explained(*traced(function, args, kwargs, measure), function, args, kwargs, html, measure)


def traced(
    function: Any, args: tuple, kwargs: dict[str, Any], measure: bool, compile: bool = False
) -> tuple[ConcreteFunction, profiling.Profile]:
    """The trace for the arguments, and a profile of what that took: of compiling, too, where that is asked for or the
    program is going to be measured."""
    profile = profiling.start()
    try:
        concrete: ConcreteFunction = function.get_concrete_function(*args, **kwargs)
        if measure and settings.jit_mode(concrete.function.jit_compile) is not False:
            compile = compile or not isinstance(_values(function, concrete, args, kwargs), str)
        if compile:
            concrete.function.executable.compile()
    finally:
        profiling.stop(profile)
    return concrete, profile


def explained(
    concrete: ConcreteFunction,
    profile: profiling.Profile,
    function: Any,
    args: tuple,
    kwargs: dict[str, Any],
    html: str | os.PathLike | None,
    measure: bool,
) -> Explanation:
    """The report of a trace."""
    graph_function = concrete.function
    if placing:
        placing[0].prepare(graph_function.executable, _tensors(function, args, kwargs), graph_function.device)
    section = explain("the program", graph_function.executable, concrete.graph)
    section.calls = concrete.answered_by() if graph_function.executable.is_native else None
    sections = [section]
    for gradient in graph_function.gradients():
        for title, part in (
            ("forward, with what its gradient needs", gradient.forward),
            ("gradient", gradient.backward),
        ):
            sections.append(explain(title, part.executable, part.graph))
    called = {kernel.name: f"kernel {number}" for number, kernel in enumerate(section.kernels, 1) if kernel.name}
    phases = [phase("tracing and compiling", profile, called)]
    if measure:
        values = _values(function, concrete, args, kwargs)
        if isinstance(values, str):
            section.unmeasured = values
        else:
            try:
                with drawn_apart():
                    phases.append(phase("a call", _measure(concrete, section, values), called))
            except Exception as error:  # a check of the program's, or an operation that refuses these values
                section.seconds, section.unmeasured = None, _said(error)
    report = Report(concrete.graph.name, f"({', '.join(_arguments(concrete))})", sections, list(filter(None, phases)))
    limits = machine()
    explanation = Explanation(to_text(report, limits))
    explanation.page = to_page(report, limits)
    if html is not None:
        Path(html).write_text(explanation.page, encoding="utf-8")
    return explanation


def _tensors(function: Any, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """The tensors among the arguments of a call."""
    args, kwargs = function._arguments.bind(args, kwargs)
    found: list[Any] = []
    key_of_call(args, kwargs, found)
    return found


def _arguments(concrete: ConcreteFunction) -> Iterator[str]:
    """`x: float32[3]` for tensors, then `n=3` for Python values that a trace is made for."""
    for spec in concrete.argument_specs:
        yield f"{spec.name}: {spec.dtype.name}{_shape(spec)}"
    signature = concrete.parameters.signature
    if signature is None:
        return
    positional, named = concrete.structured_input_signature
    for name, value in signature.bind_partial(*positional, **named).arguments.items():
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            yield f"{name}={value!r}"


def _shape(spec: Any) -> str:
    if spec._shape is None:
        return "[...]"
    return f"[{', '.join('?' if size is None else str(size) for size in spec._shape)}]"


def _values(function: Any, concrete: ConcreteFunction, args: tuple, kwargs: dict[str, Any]) -> list[Any] | str:
    """What the graph takes for a call, or why it can't be run to be measured."""
    args, kwargs = function._arguments.bind(args, kwargs)
    tensors: list[Any] = []
    key_of_call(args, kwargs, tensors)
    if not all(isinstance(t, EagerTensor) for t in tensors) or len(tensors) != len(concrete.argument_specs):
        return "that takes values, not specs"
    for node in concrete.graph.walk():
        # What checks may raise is found when it runs; random numbers are drawn apart from the program's.
        if node.op.calls_python or (node.op.effect and not node.op.is_check and not node.op.is_random):
            where = describe_span(node.span).partition("\n")[0]
            return f"running it has effects: op '{node.op.name}'{f' at {where}' if where else ''}"
    return [t._array for t in concrete.inputs_for(tensors)]


def _said(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return f"a call raises {type(error).__name__}{f' ({text})' if text else ''}"


def _measure(concrete: ConcreteFunction, section: Section, values: list[Any]) -> profiling.Profile:
    """Notes the best times of a few runs whose results are thrown away, and of the kernels in them; variables keep
    their values. Gives the profile of the fastest run: others may hold a garbage collection."""
    run = concrete.function.executable
    _note_best_time(run, section, values)
    best: dict[str, float] = {}
    fastest: tuple[float, profiling.Profile] | None = None
    end = time.perf_counter() + _ENOUGH / 2
    for _ in range(_RUNS):
        profile = profiling.start()
        try:
            with profiling.span("call", f"call {concrete.graph.name}"):
                run(values)
        finally:
            profiling.stop(profile)
        # Of the span itself, so that the picture of this run shows no shorter time.
        seconds = max(event.duration for event in profile.events if event.category == "call") / 1e9
        section.seconds = min(section.seconds or seconds, seconds)
        if fastest is None or seconds < fastest[0]:
            fastest = seconds, profile
        for event in profile.events:
            name = event.arguments.get("kernel", "")
            if event.category == "kernel":
                best[name] = min(best.get(name, math.inf), event.duration / 1e9)
        if time.perf_counter() > end:
            break
    for kernel in section.kernels:
        kernel.seconds = best.get(kernel.name)
    assert fastest is not None
    note_interpretation(section, fastest[1])
    return fastest[1]


def _note_best_time(run: Executable, section: Section, values: list[Any]) -> None:
    start = time.perf_counter()
    while True:
        before = time.perf_counter()
        run(values)
        now = time.perf_counter()
        section.seconds = min(section.seconds or now - before, now - before)
        if now - start > _ENOUGH or now - start > _RUNS * section.seconds:
            return

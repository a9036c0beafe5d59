"""The ways out of the process, beside each other: each program of the examples as a saved model, an ONNX model and a C
library.

    python -m benchmarks.routes          writes the table of docs/deploy.md
    python -m benchmarks.routes --only 'kalman*'    prints the rows of some programs

Agreement is the largest difference from the function's own results, relative to the largest element of each. Times are
those of a call with the same arguments, beside the function's own. Sizes are those of all files that a route needs.
"""

from __future__ import annotations

import argparse
import ctypes
import fnmatch
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag
from examples import (
    distributed_training,
    dynamic_rnn,
    ensemble,
    epidemic_sweep,
    implicit_newton,
    kalman,
    mandelbrot,
    ode_gradient,
    path_gradient,
    quickstart,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "deploy.md"
BEGIN, END = "<!-- routes -->", "<!-- end of routes -->"
ROUTES = ("saved model", "ONNX", "C library")


@dataclass(frozen=True)
class Program:
    """A function of an example, and arguments for it."""

    name: str
    function: Any
    arguments: tuple[Any, ...]

    def trace(self, jit_compile: bool | None = None) -> Any:
        """A concrete function for such arguments."""
        function = ag.function(self.function.python_function, jit_compile=jit_compile)
        return function.get_concrete_function(*self.arguments)


def programs() -> list[Program]:
    """The functions of the examples with arguments of the size that the examples use, or smaller."""
    random = np.random.default_rng(0)
    start = tuple(ag.constant(value) for value in (30.0, 25.0, 2.0))
    network = dynamic_rnn.DynamicRNN(dynamic_rnn.RNNCell(1, 24, 1))
    trainer = dynamic_rnn.Trainer(dynamic_rnn.DynamicRNN(dynamic_rnn.RNNCell(1, 24, 1)))
    signals, targets = (ag.constant(each) for each in dynamic_rnn.batch_of_signals(random, 32, 20))
    fuel, tolerance = ag.constant(implicit_newton.fuel()), ag.constant(1e-6, ag.float64)
    flows = ag.constant(kalman.read_data()[1])
    variances = ag.constant(np.log(np.full(2, float(np.var(flows.numpy())) / 2.0)))
    xs, ys = (ag.constant(axis) for axis in mandelbrot.axes(64))
    depth = ag.constant(50)
    years, pelts = (ag.constant(each) for each in ode_gradient.read_data())
    rates = ag.constant(np.asarray(ode_gradient.START, np.float64))
    series = ag.constant(path_gradient.make_series()[:2, :24])
    points, curve = (ag.constant(each) for each in ensemble.data())
    some, penalty = ag.constant(np.arange(0, 400, 2, dtype=np.int32)), ag.constant(1e-3, ag.float64)
    layers = distributed_training.Model()
    x, gamma, band = series[0] * 0.9, ag.constant(path_gradient.GAMMA, ag.float64), ag.constant(path_gradient.BAND)
    return [
        Program("quickstart: throw", quickstart.compiled, start),
        Program("quickstart: gradient", quickstart.gradient, start),
        Program("dynamic_rnn: forward", ag.function(network.__call__), (signals,)),
        Program("dynamic_rnn: step", ag.function(lambda s, t: trainer.step(s, t)), (signals, targets)),
        Program("implicit_newton: temperature", implicit_newton.temperature, (fuel, tolerance)),
        Program("implicit_newton: gradient_by_loop", implicit_newton.gradient_by_loop, (fuel, tolerance)),
        Program("implicit_newton: gradient_by_theorem", implicit_newton.gradient_by_theorem, (fuel, tolerance)),
        Program("kalman: filtered", kalman.filtered, (variances, flows)),
        Program("kalman: derivatives", kalman.likelihood_and_derivatives, (variances, flows)),
        Program("kalman: maximise", kalman.maximise, (variances, flows)),
        Program("mandelbrot: by pixel", mandelbrot.escape_by_pixel, (xs, ys, depth)),
        Program("mandelbrot: by array", mandelbrot.escape_by_array, (xs, ys, depth)),
        Program("ode_gradient: solve", ode_gradient.solve_compiled, (rates, years, pelts)),
        Program("ode_gradient: gradient", ode_gradient.loss_and_gradient, (rates, years, pelts)),
        Program("path_gradient: soft_dtw", path_gradient.soft_dtw, (x, series[1], gamma, band)),
        Program("path_gradient: alignment", path_gradient.alignment, (x, series[1], gamma, band)),
        Program("path_gradient: gradient", path_gradient.loss_and_gradient, (x, series, gamma, band)),
        Program("path_gradient: nearest", path_gradient.nearest, (x, series, band)),
        Program("epidemic_sweep: simulate", epidemic_sweep.simulate, (ag.constant(epidemic_sweep.parameters(1000)),)),
        Program("ensemble: fit", ensemble.fit, (points, curve, some, penalty)),
        Program("ensemble: error", ensemble.error_on, (points, curve, some, ag.ones([12], ag.float64))),
        Program("distributed_training: model", ag.function(layers.__call__), (ag.ones([64, 2], ag.float64),)),
    ]


KERAS = ("digits: model", "grammar_rnn: model", "grammar_rnn: write", "transfer: model")


def keras_programs() -> list[Program]:
    """Those of the examples that need Keras, which puts modules of this project in TensorFlow's place."""
    from examples import digits, grammar_rnn, transfer

    ag.random.set_seed(0)
    classifier, language = digits.make_model(), grammar_rnn.make_model(40)
    transferred = transfer.with_head(transfer.make_trunk(), 5)
    images = ag.random.uniform([32, *classifier.input_shape[1:]])
    pictures = ag.random.uniform([32, *transferred.input_shape[1:]])
    characters = ag.random.uniform([16, 40], maxval=20, dtype=ag.int32)
    language(characters)  # which makes its weights
    speaker = grammar_rnn.Speaker(language)
    arguments = [
        (ag.function(lambda x: classifier(x)), (images,)),
        (ag.function(lambda x: language(x)), (characters,)),
        (ag.function(lambda heat: speaker.write(heat)), (ag.constant(1.0),)),
        (ag.function(lambda x: transferred(x)), (pictures,)),
    ]
    return [Program(name, *each) for name, each in zip(KERAS, arguments, strict=True)]


@dataclass(frozen=True)
class Measured:
    """A route: how far its results are from the function's, seconds of a call, and bytes; or why there is none."""

    difference: float = 0.0
    seconds: float = 0.0
    size: int = 0
    refused: str = ""


Call = Callable[[], list[np.ndarray]]


def measure(program: Program, folder: Path) -> tuple[float, dict[str, Measured]]:
    """The seconds that a call of the function itself takes, and each route."""
    concrete = program.trace(jit_compile=True)  # native from the first call on
    values = [v.numpy() for v in concrete.variables]

    def own() -> list[np.ndarray]:
        return [np.asarray(each.numpy()) for each in ag.nest.flatten(concrete(*program.arguments))]

    expected = own()
    seconds = _seconds(own)
    found = {}
    for name, make in (("saved model", _saved), ("ONNX", _onnx), ("C library", _library)):
        for variable, value in zip(concrete.variables, values):
            variable.assign(value)
        place = folder / name.replace(" ", "_")
        place.mkdir()
        try:
            call = make(concrete, program, place)
        except ag.errors.UnimplementedError as error:
            found[name] = Measured(refused=str(error).splitlines()[0])
            continue
        results = call()
        difference = max(_difference(a, b) for a, b in zip(expected, results, strict=True))
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file() and file.suffix not in _ASIDE)
        found[name] = Measured(difference, _seconds(call), size)
    return seconds, found


_ASIDE = (".a", ".o", ".c")  # of a C library: what a program doesn't need at run time


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if not a.size or np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return 0.0
    return float(np.max(np.abs(a.astype(np.float64) - b)) / max(np.max(np.abs(a)).item(), 1e-300))


def _seconds(call: Callable[[], object]) -> float:
    """The best of the calls that half a second has room for."""
    call(), call()
    best, end = float("inf"), time.perf_counter() + 0.5
    while time.perf_counter() < end:
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def _saved(concrete: Any, program: Program, folder: Path) -> Call:
    holder = ag.Module()
    holder.variables_of_it = list(concrete.variables)  # type: ignore[attr-defined]
    holder.call = concrete  # type: ignore[attr-defined]
    ag.saved_model.save(holder, folder)
    loaded = ag.saved_model.load(folder)
    return lambda: [np.asarray(each.numpy()) for each in ag.nest.flatten(loaded.call(*program.arguments))]


def _onnx(concrete: Any, program: Program, folder: Path) -> Call:
    import onnxruntime

    made = ag.onnx.export(concrete, folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(made.path), options, providers=["CPUExecutionProvider"])
    inputs = {name: np.asarray(each.numpy()) for name, each in zip(made.inputs, program.arguments, strict=True)}
    return lambda: session.run(list(made.outputs), inputs)


def _library(concrete: Any, program: Program, folder: Path) -> Call:
    """Calls by C's convention: pointers and open sizes of the arguments, places for the results (docs/c_library.md).

    A function that assigns variables has its weights in a file, and changes those that were loaded."""
    weights = folder / "program.safetensors" if concrete.assigned_variables else None
    made = ag.export.c_library(concrete, folder, name="program", weights=weights)
    if made.shared is None:
        raise ag.errors.UnimplementedError("there is no C compiler to link it")
    library = ctypes.CDLL(str(made.shared))
    message = ctypes.create_string_buffer(400)
    said = [message, ctypes.c_size_t(len(message))]

    def check(code: int) -> None:
        if code:
            raise ag.errors.InternalError(message.value.decode())

    arguments: list[Any] = []
    if weights is not None:
        loaded = ctypes.c_void_p()
        check(library.program_load(str(weights).encode(), ctypes.byref(loaded), *said))
        arguments.append(loaded)
    for spec, argument in zip(concrete.argument_specs, program.arguments, strict=True):
        array = np.asarray(argument.numpy(), order="C")
        kind = np.ctypeslib.as_ctypes_type(array.dtype)
        if array.ndim == 0:
            arguments.append(kind(array.item()))
            continue
        arguments.append(np.ctypeslib.as_ctypes(array.reshape(-1)))
        arguments += [ctypes.c_int64(size) for size, known in zip(array.shape, spec.shape) if known is None]
    places: list[tuple[Any, Any]] = []
    for spec in concrete.outputs:
        scalar = np.ctypeslib.as_ctypes_type(spec.dtype.np)
        place = scalar() if spec.shape.rank == 0 else ctypes.POINTER(scalar)()
        sizes = (ctypes.c_int64 * spec.shape.rank)(*[size or 0 for size in spec.shape])
        places.append((place, sizes))
        arguments.append(ctypes.byref(place))
        if None in list(spec.shape):
            arguments.append(sizes)

    def call() -> list[np.ndarray]:
        check(library.program(*arguments, *said))
        results = []
        for (place, sizes), spec in zip(places, concrete.outputs):
            if spec.shape.rank == 0:
                results.append(np.asarray(place.value, spec.dtype.np))
                continue
            results.append(np.ctypeslib.as_array(place, tuple(sizes)).copy() if all(sizes) else np.zeros(sizes))
            library.program_free(place)
        return results

    return call


def row(program: Program) -> str:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, found = measure(program, Path(folder))
    cells = [program.name, f"{_time(seconds)}"]
    for name in ROUTES:
        route = found[name]
        if route.refused:
            cells.append("refused")
            continue
        difference = "equal" if route.difference == 0 else f"{route.difference:.0e}"
        slower = route.seconds / seconds
        times = f"{slower:.1f}" if slower < 10 else f"{slower:,.0f}"
        cells.append(f"{difference}, {times} ×, {max(1, round(route.size / 1000))} kB")
    return f"| {' | '.join(cells)} |"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def table(only: str = "*") -> Iterator[str]:
    """The lines of the table, one after the other as they are measured."""
    yield f"| program | a call | {' | '.join(ROUTES)} |"
    yield f"| --- | --- | {' | '.join(['---'] * len(ROUTES))} |"
    for program in [*programs(), *keras_programs()]:
        if fnmatch.fnmatch(program.name, only):
            yield row(program)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.routes", description=__doc__)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="the programs with such names, printed alone")
    options = parser.parse_args(given)
    lines = []
    for line in table(options.only):
        print(line, flush=True)
        lines.append(line)
    if options.only == "*":
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split(f"{BEGIN}\n", 1)
        _, after = rest.split(f"{END}\n", 1)
        PAGE.write_text(f"{before}{BEGIN}\n{chr(10).join(lines)}\n{END}\n{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

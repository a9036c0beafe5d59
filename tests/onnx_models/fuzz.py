"""Random programs as ONNX models: ONNX Runtime beside eager execution.

    python -m tests.onnx_models.fuzz [--minutes N] [--count N] [--seed S]

The programs are those of tests/fuzz_kernels (arrays: operations, loops, branches, gradients, variables) and of
tests/fuzz_programs (Python: lists, dictionaries, objects, `try`), taken in turn. What an eager run raises isn't
compared, since models have no checks. Exit code 1 if any program differs; `--first N --count 1` tries that one again.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import autograph as ag
from runtime.onnx_export.emitter import NoForm
from tests.fuzz_kernels.compare import Runs
from tests.fuzz_kernels.generate import make
from tests.fuzz_programs.compare import POINTS, TooLong, forget, limited, load, value_and_slopes
from tests.fuzz_programs.writer import random_program
from tests.onnx_models.running import as_text, session

# Of the largest element; and how much more than a small change of the operands makes of it.
_TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-10}
_MORE = 1e3
_PATIENCE = 120  # seconds for one program, after which the process ends with its stacks


class Difference(Exception):
    """A model gives something else than the program."""


def array_program(seed: str) -> str:
    """Compares a program of tests/fuzz_kernels; gives "agree", or why there was nothing to compare."""
    with Runs(make(seed)) as runs:
        if any("bfloat16" in text for text in (runs.program.source(), *runs.program.inputs.values())):
            return "can't be run: ONNX Runtime takes no arrays of bfloat16 from NumPy"
        try:
            return _compared(runs)
        except NoForm as error:
            if "random numbers" not in str(error):
                raise
            return "can't be exported: it draws random numbers"


def _compared(runs: Runs) -> str:
    values = {name: ag.constant(eval(text, {"np": np})) for name, text in runs.program.inputs.items()}
    function = runs._staged(values, False)
    try:
        concrete = function.get_concrete_function(*([] if function.input_signature else values.values()))
    except Exception as error:
        return f"can't be traced: {type(error).__name__}"
    runs.module.v.assign([1.0, -2.0, 0.5])
    runs.module.w.assign(3)
    verdicts = []
    with _model(concrete) as (made, run):
        for n in [None, *runs.program.more]:
            eager, moved = runs.run("eager", n), runs.run("perturbed", n)
            if eager.error is not None or moved.error is not None:
                verdicts.append(f"raises {type(eager.error or moved.error).__name__}")
                continue
            inputs = {
                name: eval(text if n is None or name != "n" else f"np.int32({n})", {"np": np})
                for name, text in runs.program.inputs.items()
            }
            try:
                found = run(dict(zip(made.inputs, inputs.values())))
            except Exception as error:
                empty = any(0 in each.shape for each in [*inputs.values(), *eager.values])
                if "by zero" not in str(error) or not empty:
                    raise
                verdicts.append("ONNX Runtime refuses to divide no elements by zero")
                continue
            _same(eager.values, moved.values, found[: len(made.outputs)], f"n = {n}")
            verdicts.append("agree")
    return "agree" if "agree" in verdicts else verdicts[0]


def python_program(seed: int) -> str:
    """The same for a program of tests/fuzz_programs, with its gradient."""
    try:
        program = load(random_program(seed))
        function = ag.function(lambda x, y, n: value_and_slopes(program, x, y, n))
        specs = [ag.TensorSpec([], name="x"), ag.TensorSpec([], name="y"), ag.TensorSpec([], ag.int32, name="n")]
        try:
            concrete = function.get_concrete_function(*specs)
        except Exception as error:
            return f"can't be traced: {type(error).__name__}"
        verdict = "raises"
        with _model(concrete) as (made, run):
            for point in POINTS:
                arguments = [ag.constant(each) for each in point]
                try:
                    with limited(), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        eager = value_and_slopes(program, *arguments)
                    staged = concrete(*arguments)
                except (TooLong, Exception):
                    continue
                del eager  # it was there to see whether the program can be run
                wanted = [np.asarray(each.numpy()) for each in ag.nest.flatten(staged) if each is not None]
                found = run(dict(zip(made.inputs, [np.asarray(each.numpy()) for each in arguments])))
                _same([_numbers(wanted)], [_numbers(wanted)], [_numbers(found[: len(made.outputs)])], f"at {point}")
                verdict = "agree"
        return verdict
    finally:
        forget()


def _numbers(arrays: Any) -> Any:
    """All of them in order of size: lists are one result in a model, and several in Python."""
    return np.sort(np.concatenate([np.zeros(0, np.float32), *[each.astype(np.float32).ravel() for each in arrays]]))


class _model:
    """A concrete function's model: what `export` gives, and what runs it."""

    def __init__(self, concrete: Any) -> None:
        self.concrete = concrete

    def __enter__(self) -> Any:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "model.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = ag.onnx.export(self.concrete, path)
        running = session(path)
        return made, lambda inputs: running.run(None, {name: as_text(value) for name, value in inputs.items()})

    def __exit__(self, *error: object) -> None:
        self.folder.cleanup()


def _same(wanted: Any, moved: Any, found: Any, where: str) -> None:
    if len(wanted) != len(found):
        raise Difference(f"{where}: {len(found)} results instead of {len(wanted)}")
    for number, (a, other, b) in enumerate(zip(wanted, moved, found)):
        what = f"{where}, result {number}"
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Difference(f"{what}: {b.dtype}{b.shape} instead of {a.dtype}{a.shape}")
        if a.dtype.kind not in "f":
            # ONNX Runtime cuts powers and products of integers to the limits of the dtype, where ours wrap.
            limits = np.iinfo(a.dtype) if a.dtype.kind in "iu" else None
            cut = np.isin(b, [limits.min, limits.max]) if limits else np.zeros(b.shape, bool)
            if ((a != b) & ~cut).any() and np.array_equal(a, other):
                raise Difference(f"{what}: {b} instead of {a}")
            continue
        finite = np.abs(a[np.isfinite(a)])
        near = _TOLERANCES[a.dtype.name] * max(1.0, float(finite.max(initial=0.0)))
        with np.errstate(all="ignore"):
            allowed = near + _MORE * np.abs(a - other)
            off = ~((np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)) | ~np.isfinite(allowed))
        if off.any():
            raise Difference(f"{what}: {b} instead of {a}")


def cases(seed: int) -> Iterator[tuple[str, Any]]:
    number = 0
    while True:
        yield f"arrays {number}", lambda number=number: array_program(f"{seed}-{number}")
        yield f"Python {number}", lambda number=number: python_program(1000 * seed + number)
        number += 1


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.onnx_models.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(given)
    faulthandler.enable()
    counts, failed, start = collections.Counter[str](), [], time.monotonic()
    for index, (name, run) in enumerate(cases(options.seed)):
        if options.minutes is not None and time.monotonic() - start > 60 * options.minutes:
            break
        if options.minutes is None and index >= options.first + options.count:
            break
        if index < options.first:
            continue
        faulthandler.dump_traceback_later(_PATIENCE, exit=True)
        try:
            verdict = run()
        except ag.errors.UnimplementedError as error:
            verdict = f"refused: {str(error).splitlines()[0][:90]}"
        except Exception as error:
            verdict = "differs" if isinstance(error, Difference) else "breaks"
            failed.append(name)
            text = str(error) if isinstance(error, Difference) else traceback.format_exc(limit=-5)
            print(f"--- {name} (--seed {options.seed} --first {index} --count 1)\n{text[:1500]}", flush=True)
        faulthandler.cancel_dump_traceback_later()
        counts[verdict] += 1
    for verdict, count in counts.most_common():
        print(f"{count:6}  {verdict}")
    print(f"failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

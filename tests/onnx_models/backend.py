"""ONNX' own backend tests: the models that ship with the package, run as functions of ours.

    python -m tests.onnx_models.backend [PATTERN]   what fails and isn't in backend_exceptions.txt, or passes and is

`--write` writes the file anew, with the first line of each error.
"""

from __future__ import annotations

import fnmatch
import functools
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import autograph as ag

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
EXCEPTIONS = Path(__file__).with_name("backend_exceptions.txt")


@functools.cache
def cases() -> dict[str, Any]:
    """All of them by name."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return {case.name: case for kind in KINDS for case in load_model_tests(kind=kind)}


def exceptions() -> dict[str, str]:
    """The names of those that fail, with reasons."""
    lines = EXCEPTIONS.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def run(name: str) -> None:
    """Raises where the results aren't those that ONNX says."""
    case = cases()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
        path.write_bytes(model.SerializeToString())
        function = ag.onnx.load(path)
        sets = case.data_sets if case.model is not None else list(_stored(Path(case.model_dir), model))
        for inputs, expected in sets:
            results = function(*[_value(each) for each in inputs])
            results = results if isinstance(results, tuple) else (results,)
            for wanted, found in zip(expected, results, strict=len(results) == len(expected)):
                _check(_value(wanted), found, max(case.rtol, 1e-3), max(case.atol, 1e-6))


def _stored(folder: Path, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    for data in sorted(folder.glob("test_data_set_*")):
        both = []
        for kind, infos in (("input", model.graph.input), ("output", model.graph.output)):
            names = sorted(data.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
            both.append([_parsed(path, info) for path, info in zip(names, infos)])
        yield both[0], both[1]


def _parsed(path: Path, info: Any) -> Any:
    kind = onnx.SequenceProto if info.type.HasField("sequence_type") else onnx.TensorProto
    return kind.FromString(path.read_bytes())


def _value(value: Any) -> Any:
    """An input or output as an array, a list of such, or None."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    elif isinstance(value, onnx.SequenceProto):
        value = numpy_helper.to_list(value)
    if isinstance(value, list):
        return [_value(each) for each in value]
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        flat = [each if isinstance(each, bytes) else str(each).encode() for each in array.ravel().tolist()]
        array = np.empty(array.shape, object)
        array.reshape(-1)[:] = flat
    return array


def _check(wanted: Any, found: Any, relative: float, absolute: float) -> None:
    if isinstance(wanted, list):
        assert isinstance(found, list), found
        assert len(wanted) == len(found)
        for each, other in zip(wanted, found):
            _check(each, other, relative, absolute)
        return
    if wanted is None:
        assert found is None
        return
    array = np.asarray(found.numpy(), object if wanted.dtype == object else None)
    assert array.dtype == wanted.dtype, f"{array.dtype} instead of {wanted.dtype}"
    assert array.shape == wanted.shape, f"{array.shape} instead of {wanted.shape}"
    if array.dtype == object:
        assert array.ravel().tolist() == wanted.ravel().tolist()
    elif array.dtype.kind in "cf":
        np.testing.assert_allclose(array, wanted, rtol=relative, atol=absolute)
    else:
        # bfloat16 and the like are exact in float64; their last place is 1/256.
        wide = max(relative, 1e-2) if array.dtype.kind == "V" else 0.0
        np.testing.assert_allclose(array.astype(np.float64), wanted.astype(np.float64), rtol=wide)


def main(arguments: list[str]) -> int:
    patterns = [each for each in arguments if not each.startswith("-")] or ["*"]
    known, failed, passed = exceptions(), {}, []
    for name in cases():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            continue
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                run(name)
            passed.append(name)
        except Exception as error:
            failed[name] = " ".join(f"{type(error).__name__}: {error}".split())[:120]
    if "--write" in arguments:
        head = "# ONNX' backend tests that fail, with what they say: python -m tests.onnx_models.backend --write\n"
        EXCEPTIONS.write_text(
            head + "".join(f"{name} {why}\n" for name, why in sorted(failed.items())), encoding="utf-8"
        )
    for name, why in failed.items():
        if name not in known:
            print(f"fails: {name} {why}")
    for name in passed:
        if name in known:
            print(f"passes: {name}")
    print(f"{len(passed)} of {len(passed) + len(failed)} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

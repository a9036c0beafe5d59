"""C libraries that load their weights: by ctypes, from C, and from files that are damaged."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import struct
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import autograph as ag
from autograph.cli import main
from runtime import system
from runtime.errors import DATA_LOSS, INVALID_ARGUMENT, NOT_FOUND
from tests.export.test_c_library import Failed, compiled, run, traced

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or not system.has_posix_threads(),
    reason="needs a C compiler to link and to compile programs",
)

kernel = ag.Variable([[1.0, -2.0], [0.5, 3.0], [2.0, 0.25]], name="dense/kernel")
scale = ag.Variable(3, name="scale")
positive = ag.Variable(True)
offset = ag.constant([10.0, 20.0])


def layer(x, weights):
    y = x @ kernel * ag.cast(scale, ag.float32) + offset
    if positive:
        y = ag.nn.relu(y)
    return y * weights, scale, kernel


SIGNATURE = "x: float32[None, 3], weights: float32"
NAMES = {"dense/kernel", "scale", "Variable", "tensor"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    concrete, library, made = compiled(layer, SIGNATURE, folder, weights=folder / "w" / "layer.safetensors")
    assert made.weights == folder / "w" / "layer.safetensors"
    return concrete, library, made


def load(library, path, name="layer"):
    """The weights' address; raises Failed."""
    weights, message = ctypes.c_void_p(1), ctypes.create_string_buffer(400)
    code = getattr(library, f"{name}_load")(os.fsencode(path), ctypes.byref(weights), message, ctypes.c_size_t(400))
    assert (code == 0) == bool(weights.value) == (message.value == b"")
    if code:
        raise Failed(code, message.value.decode())
    return weights


def call(library, weights, x, factor):
    """The three results of `layer`."""
    x = np.ascontiguousarray(x, np.float32)
    rows, table = (ctypes.POINTER(ctypes.c_float)() for _ in range(2))
    number, sizes = ctypes.c_int32(), (ctypes.c_int64 * 2)()
    message = ctypes.create_string_buffer(400)
    code = library.layer(
        weights, x.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(len(x)), ctypes.c_float(factor),
        ctypes.byref(rows), sizes, ctypes.byref(number), ctypes.byref(table), message, ctypes.c_size_t(400),
    )  # fmt: skip
    if code:
        raise Failed(code, message.value.decode())
    found = [np.ctypeslib.as_array(rows, tuple(sizes)).copy(), number.value]
    found.append(np.ctypeslib.as_array(table, (3, 2)).copy())
    library.layer_free(rows)
    library.layer_free(table)
    return found


def test_results_follow_the_file(made, tmp_path):
    concrete, library, files = made
    assert set(load_file(files.weights)) == NAMES
    x = np.arange(6.0).reshape(2, 3)
    weights = load(library, files.weights)
    expected = [each.numpy() for each in concrete(ag.constant(x, ag.float32), 0.5)]
    for found, one in zip(call(library, weights, x, 0.5), expected):
        np.testing.assert_allclose(found, one, rtol=1e-6)
    # Two sets of weights at once; the second from a file of somebody else's.
    other = {
        "tensor": np.float32([1, -1000]), "scale": np.array(2, np.int32), "Variable": np.array(False),
        "dense/kernel": np.ones((3, 2), np.float32),
    }  # fmt: skip
    save_file(other, tmp_path / "other.safetensors", metadata={"by": 'a "test" \\ \u2028 \U0001f600'})
    second = load(library, tmp_path / "other.safetensors")
    rows, number, table = call(library, second, x, 1.0)
    np.testing.assert_allclose(rows, 2 * x.sum(1, keepdims=True) + [1, -1000], rtol=1e-6)
    assert number == 2
    assert table.tolist() == np.ones((3, 2)).tolist()
    np.testing.assert_allclose(call(library, weights, x, 0.5)[0], expected[0], rtol=1e-6)
    for each in (weights, second, None):
        library.layer_unload(each)
    with pytest.raises(Failed, match="weights is a null pointer") as caught:
        call(library, None, x, 0.5)
    assert caught.value.code == INVALID_ARGUMENT


def test_the_gradient_takes_the_same_weights(tmp_path):
    factor = ag.Variable(3.0, name="factor")

    def product(x):
        return x * x * factor

    file = tmp_path / "product.safetensors"
    _, library, _ = compiled(product, "x: float32", tmp_path, gradient=True, weights=file)
    assert list(load_file(file)) == ["factor"]
    weights = load(library, file, "product")
    value, slope = ctypes.c_float(), ctypes.c_float()
    code = library.product_gradient(
        weights, ctypes.c_float(2.0), ctypes.byref(value), ctypes.byref(slope), None, ctypes.c_size_t(0)
    )
    assert (code, value.value, slope.value) == (0, 12.0, 12.0)
    library.product_unload(weights)


def header(content):
    """The header's length, the header and the arrays of a file."""
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_header(said, arrays):
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return struct.pack("<Q", len(text)) + text + arrays


def changed(content, name, **entries):
    said, arrays = header(content)
    said[name].update(entries)
    return with_header(said, arrays)


def damages(content):
    """(what is wrong, the file, the code, a part of the message)"""
    said, arrays = header(content)
    text = content[8 : len(content) - len(arrays)].rstrip()
    first = next(name for name in said if said[name]["data_offsets"][0] == 0 and said[name]["data_offsets"][1])
    end = said[first]["data_offsets"][1]
    yield "empty", b"", DATA_LOSS, "less than 8 bytes"
    yield "short", content[:20], DATA_LOSS, "ends before its header"
    yield "cut", content[:-1], DATA_LOSS, "ends before its arrays"
    yield "longer", content + b"x", DATA_LOSS, "follows its arrays"
    yield "huge", struct.pack("<Q", 1 << 63) + content[8:], DATA_LOSS, "longer than 100 MB"
    yield "no header", struct.pack("<Q", 0) + arrays, DATA_LOSS, "no header"
    yield "no object", with_header(b"[1]", arrays), DATA_LOSS, "begin with {"
    yield "no end", with_header(text[:-1], arrays), DATA_LOSS, "not the JSON"
    yield "more", with_header(text + b" {}", arrays), DATA_LOSS, "follows its header"
    yield "nothing", with_header({}, arrays), INVALID_ARGUMENT, "lacks the tensor"
    yield "unknown", with_header({**said, "more": said["scale"]}, arrays), INVALID_ARGUMENT, "no tensor 'more'"
    twice = text[:-1] + b"," + text[1:]
    yield "twice", with_header(twice, arrays), DATA_LOSS, "two entries"
    yield "dtype", changed(content, "scale", dtype="F32"), INVALID_ARGUMENT, "'scale' has the dtype F32"
    yield "shape", changed(content, "dense/kernel", shape=[2, 3]), INVALID_ARGUMENT, "another shape"
    yield "rank", changed(content, "scale", shape=[1]), INVALID_ARGUMENT, "another shape"
    yield "many", changed(content, "tensor", shape=[2] * 90), INVALID_ARGUMENT, "another shape"
    yield "negative", changed(content, "tensor", shape=[-2]), DATA_LOSS, "where a number is expected"
    yield "large", changed(content, "tensor", shape=[1 << 65]), DATA_LOSS, "too large"
    yield "zeros", with_header(text.replace(b"[0,", b"[00,"), arrays), DATA_LOSS, "begins with 0"
    yield "overlap", changed(content, first, data_offsets=[1, end + 1]), DATA_LOSS, "overlap"
    yield "wrong place", changed(content, first, data_offsets=[0, end + 4]), DATA_LOSS, "does not fit"
    yield "backwards", changed(content, first, data_offsets=[end, 0]), DATA_LOSS, "does not fit"
    yield "lacking", with_header({**said, "scale": {"dtype": "I32"}}, arrays), DATA_LOSS, "lacks the dtype"
    yield "more said", changed(content, "scale", extra=1), DATA_LOSS, "something unknown"
    yield "escape", with_header(text.replace(b'"scale"', b'"sc\\qle"'), arrays), DATA_LOSS, "wrong escape"
    yield "surrogate", with_header(text.replace(b'"scale"', b'"\\ud800x"'), arrays), DATA_LOSS, "wrong escape"
    yield "control", with_header(text.replace(b'"scale"', b'"sc\nle"'), arrays), DATA_LOSS, "control character"
    place = said["Variable"]["data_offsets"][0]
    place += len(content) - len(arrays)
    yield "bool", content[:place] + b"\x02" + content[place + 1 :], DATA_LOSS, "neither"


def test_damaged_files_are_refused(made, tmp_path):
    _, library, files = made
    content = files.weights.read_bytes()
    file = tmp_path / "damaged.safetensors"
    for what, damaged, code, message in damages(content):
        file.write_bytes(damaged)
        with pytest.raises(Failed, match=message) as caught:
            load(library, file)
        assert caught.value.code == code, what
    with pytest.raises(Failed, match="can't be opened: No such file") as caught:
        load(library, tmp_path / "absent.safetensors")
    assert caught.value.code == NOT_FOUND
    with pytest.raises(Failed, match="less than 8 bytes"):
        load(library, tmp_path)


def test_names_may_be_escaped_and_spaces_stand_anywhere(made, tmp_path):
    _, library, files = made
    said, arrays = header(files.weights.read_bytes())
    text = json.dumps(said, indent=3).replace("dense/kernel", "dense\\/\\u006bernel").encode() + b"   "
    (tmp_path / "spaced.safetensors").write_bytes(with_header(text, arrays))
    library.layer_unload(load(library, tmp_path / "spaced.safetensors"))


HARNESS = """
#include "layer.h"
#include <stdio.h>
int main(int count, char **paths) {
    int codes[32] = {0}, i;
    for (i = 1; i < count; i++) {
        char message[64];
        layer_weights *weights = NULL;
        int code = layer_load(paths[i], &weights, message, sizeof message);
        codes[code]++;
        if ((code == 0) != (weights != NULL) || (code == 0) != (message[0] == 0)) return 1;
        layer_unload(weights);
    }
    for (i = 0; i < 32; i++) if (codes[i]) printf("%d:%d ", i, codes[i]);
    return 0;
}
"""


def test_mutated_files_never_crash(made, tmp_path):
    """Under the sanitizers, where the compiler has them."""
    _, _, files = made
    content = files.weights.read_bytes()
    choose = random.Random(5)
    seeds = [content, *(damaged for _, damaged, _, _ in damages(content) if damaged)]
    paths = []
    for number in range(int(os.environ.get("AUTOGRAPH_MUTATIONS", 400))):
        data = bytearray(choose.choice(seeds))
        for _ in range(choose.choice([1, 1, 2, 5])):
            at, end = sorted(choose.randrange(len(data) + 1) for _ in range(2))
            kind = choose.randrange(5)
            if kind == 0 and data:
                some = choose.choice(b'{}[]":,0\\\xff9 utn'), choose.randrange(256)
                data[choose.randrange(len(data))] = choose.choice(some)
            elif kind == 1:
                del data[at:end]
            elif kind == 2:
                data[at:at] = data[at:end][:300]
            elif kind == 3:
                length = choose.choice([0, 1, len(data), max(0, len(data) - 8), 1 << 32, (1 << 64) - 1])
                data[:8] = struct.pack("<Q", length)
            else:
                data[at:at] = choose.choice([b'"', b"\\u", b"\\ud83d\\ude00", b"99999999999999999999", b"[[[[", b"{}"])
        paths.append(tmp_path / f"{number}.safetensors")
        paths[-1].write_bytes(data)
    folder = files.header.parent
    (tmp_path / "harness.c").write_text(HARNESS)
    sanitize = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
    source = ["harness.c", str(folder / "layer_weights.c"), "-I", str(folder), "-o", "harness"]
    probe = subprocess.run(["cc", *sanitize, *source], cwd=tmp_path, capture_output=True, check=False)
    if probe.returncode:
        run(["cc", *source], tmp_path)
    codes = run(["./harness", *map(str, paths)], tmp_path)
    counts = dict(tuple(map(int, each.split(":"))) for each in codes.split())
    assert sum(counts.values()) == len(paths)
    assert set(counts) <= {0, INVALID_ARGUMENT, DATA_LOSS}
    assert counts[DATA_LOSS] > len(paths) / 2


def test_the_source_is_strict_c_and_the_example_runs(made):
    concrete, _, files = made
    folder = files.header.parent
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    run(["cc", *strict, "-pedantic", "-c", "layer_weights.c", "-o", "checked.o"], folder)
    run(["cc", *strict, "-o", "main", files.example.name, files.static.name, "-lm", "-lpthread"], folder)
    out = run(["./main", "w/layer.safetensors"], folder).splitlines()
    expected = concrete(ag.ones([2, 3]), 1.0)[0].numpy().ravel()
    np.testing.assert_allclose([float(each) for each in out[0].partition("=")[2].split()], expected, rtol=1e-6)
    failed = subprocess.run(["./main", "none"], cwd=folder, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "layer_load: error 5: NotFoundError: none can't be opened" in failed.stderr


def test_what_has_no_weights(tmp_path, monkeypatch):
    with pytest.raises(ag.errors.InvalidArgumentError, match="has no weights"):
        ag.export.c_library(traced(lambda x: x + 1.0, "x: float32"), tmp_path, "f", weights=tmp_path / "w")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ag.errors.InvalidArgumentError, match="no-such-compiler wasn't found"):
        ag.export.c_library(traced(layer, SIGNATURE), tmp_path, weights=tmp_path / "w.safetensors")
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path, capsys):
    file = tmp_path / "model.py"
    file.write_text(
        "import autograph as ag\nw = ag.Variable([2.0, 3.0], name='w')\n\ndef f(x):\n    return ag.reduce_sum(x * w)\n"
    )
    weights = tmp_path / "build" / "f.safetensors"
    command = ["compile", f"{file}:f", "--signature", "x: float32[2]", "--output", str(tmp_path / "build")]
    assert main([*command, "--weights", str(weights)]) == 0
    assert str(weights) in capsys.readouterr().out
    assert load_file(weights)["w"].tolist() == [2.0, 3.0]


def test_variables_that_are_assigned_are_state_of_the_weights(tmp_path):
    total = ag.Variable([0.0, 0.0], name="total")
    last = ag.Variable([1.0, 1.0], name="last")
    count = ag.Variable(0, name="count")

    def track(x):
        before = total + 0.0
        if count % 2 == 0:  # the two change places
            total.assign(last)
            last.assign(before)
        total.assign_add(x)
        count.assign_add(1)
        ag.debugging.assert_less(ag.reduce_sum(x), 100.0, "too large")
        return total * 1.0, before, count * 1

    file = tmp_path / "track.safetensors"
    concrete, library, made = compiled(track, "x: float32[2]", tmp_path, weights=file)
    text = made.header.read_text()
    assert "    track_weights *weights,\n" in text
    assert "no other thread may use the same weights" in text
    one, two = load(library, file, "track"), load(library, file, "track")

    def step(weights, x):
        x = np.float32(x)
        arrays = [ctypes.POINTER(ctypes.c_float)() for _ in range(2)]
        number, message = ctypes.c_int32(), ctypes.create_string_buffer(400)
        code = library.track(
            weights, x.ctypes.data_as(ctypes.c_void_p), *map(ctypes.byref, arrays), ctypes.byref(number), message,
            ctypes.c_size_t(400),
        )  # fmt: skip
        if code:
            raise Failed(code, message.value.decode())
        found = [each[:2] for each in arrays]
        for each in arrays:
            library.track_free(each)
        return [*found, number.value]

    for value in (1.0, 2.0, 4.0):
        expected = [each.numpy().tolist() for each in concrete(ag.constant([value, 0.0]))]
        assert step(one, [value, 0.0]) == expected
    assert expected[2] == 3
    # Another set of weights has a state of its own, and an error leaves all as it was.
    assert step(two, [1.0, 0.0])[2] == 1
    with pytest.raises(Failed, match="too large"):
        step(two, [1000.0, 0.0])
    assert step(two, [1.0, 0.0]) == [[3.0, 1.0], [2.0, 1.0], 2]
    # The results may be declined.
    zeros = np.zeros(2, np.float32)
    given = zeros.ctypes.data_as(ctypes.c_void_p)
    assert library.track(two, given, None, None, None, None, ctypes.c_size_t(0)) == 0
    assert step(two, [0.0, 0.0])[2] == 4
    for weights in (one, two):
        library.track_unload(weights)


def test_variables_whose_size_changes_are_refused(tmp_path):
    rows = ag.Variable([[1.0]], shape=ag.TensorShape([None, 1]), name="rows")

    def grow(x):
        rows.assign(ag.concat([rows, [[x]]], 0))
        return ag.reduce_sum(rows)

    with pytest.raises(ag.errors.UnimplementedError, match="a value of unknown size to the variable 'rows:0'"):
        ag.export.c_library(traced(grow, "x: float32"), tmp_path, weights=tmp_path / "w")


def test_a_training_step_trains_its_weights(tmp_path):
    w = ag.Variable([0.0, 0.0], name="w")

    def train(x, y):
        with ag.GradientTape() as tape:
            loss = ag.reduce_mean((ag.linalg.matvec(x, w) - y) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    file = tmp_path / "train.safetensors"
    concrete, library, _ = compiled(train, "x: float32[None, 2], y: float32[None]", tmp_path, weights=file)
    weights = load(library, file, "train")
    x, y = np.float32([[1, 2], [3, -1], [0.5, 1]]), np.float32([5, 1, 2.5])
    for _ in range(5):
        loss = ctypes.c_float()
        code = library.train(
            weights, x.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(3), y.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_int64(3), ctypes.byref(loss), None, ctypes.c_size_t(0),
        )  # fmt: skip
        assert code == 0
        np.testing.assert_allclose(loss.value, float(concrete(x, y)), rtol=1e-4)
    library.train_unload(weights)

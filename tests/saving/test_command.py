"""`autograph saved-model show|run`."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from autograph import cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model = ag.Module()
    model.scale = ag.Variable([2.0, 3.0])
    model.calls = ag.Variable(0, trainable=False)

    @ag.function(input_signature=[ag.TensorSpec([None, 2], name="x"), ag.TensorSpec([], ag.string, name="label")])
    def predict(x, label):
        return {"scores": x * model.scale, "text": ag.strings.join([label, "!"])}

    model.predict = predict
    model.inner = ag.Module()
    model.inner.twice = ag.function(lambda x: x * 2)
    model.inner.twice(ag.constant(3))
    path = tmp_path_factory.mktemp("model")
    ag.saved_model.save(model, path)
    return str(path)


def run(capsys, *arguments):
    code = cli.main(["saved-model", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_show(folder, capsys):
    code, out, err = run(capsys, "show", folder)
    assert (code, err) == (0, "")
    assert out == (
        "Signatures:\n"
        "  serving_default\n"
        "    takes x: float32[?, 2]\n"
        "    takes label: string[]\n"
        "    gives scores: float32[?, 2]\n"
        "    gives text: string[]\n"
        "Functions:\n"
        "  predict\n"
        "    (x: TensorSpec(shape=(None, 2), dtype=tf.float32, name=None), label: TensorSpec(shape=(), "
        "dtype=tf.string, name=None)) -> Dict[['scores', TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)], "
        "['text', TensorSpec(shape=(), dtype=tf.string, name=None)]]\n"
        "  inner.twice\n"
        "    (x: TensorSpec(shape=(), dtype=tf.int32, name=None)) -> TensorSpec(shape=(), dtype=tf.int32, name=None)\n"
        "Variables:\n"
        "  scale: float32[2]\n"
        "  calls: int32[], not trainable\n"
    )


def test_show_program(folder, capsys):
    code, out, _ = run(capsys, "show", folder, "--program", "inner.twice")
    assert code == 0 and out.startswith("graph <lambda>(%x: int32[]):") and "multiply" in out
    code, out, _ = run(capsys, "show", folder, "--program", "serving_default")
    assert code == 0 and "string_add" in out
    code, _, err = run(capsys, "show", folder, "--program", "nothing")
    assert code == 2 and "there are: serving_default, predict, inner.twice" in err


def test_run(folder, capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2), np.float32))
    code, out, _ = run(capsys, "run", folder, "x=[[1, 2]]", "label=hello", "--output", str(tmp_path / "out"))
    assert code == 0
    assert out == "scores: float32[1, 2]\n[[2. 6.]]\ntext: string[]\nb'hello!'\n"
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "scores.npy"), [[2, 6]])
    assert np.load(tmp_path / "out" / "text.npy") == b"hello!"
    code, out, _ = run(capsys, "run", folder, f"x=@{tmp_path / 'x.npy'}", "label='a'")
    assert code == 0 and "[[2. 3.]\n [2. 3.]]" in out


@pytest.mark.parametrize(("arguments", "code", "says"), [
    (["run", "x=[[1, 2]]"], 2, "the input 'label' is missing: pass label=string[]"),
    (["run", "y=1"], 2, "expected NAME=VALUE, where NAME is one of: x, label"),
    (["run", "x=[[1]]", "label=a"], 2, "was expected to have shape (None, 2)"),
    (["run", "x=open('f')", "label=a"], 2, "the input 'x' can't be read"),
    (["run", "x=@nothing.npy", "label=a"], 2, "the input 'x' can't be read"),
    (["run", "x='a'", "label=a"], 2, "the input 'x' must be float32[?, 2]"),
    (["run", "--signature", "other"], 2, "there is no signature 'other'; there are: serving_default"),
])  # fmt: skip
def test_wrong_input(folder, capsys, arguments, code, says):
    action, *rest = arguments
    found, _, err = run(capsys, action, folder, *rest)
    assert found == code and says in err


def test_no_model(tmp_path, capsys):
    code, _, err = run(capsys, "show", str(tmp_path))
    assert code == 1 and "There is no saved model in" in err

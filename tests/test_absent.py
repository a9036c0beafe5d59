"""Public names that aren't there: the error says where they are, what they are called, or what to use instead."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import autograph as ag
from autograph import absent

ROOT = Path(__file__).resolve().parent.parent


def said(name: str) -> str:
    module = ag
    *spaces, last = name.split(".")
    for part in spaces:
        module = getattr(module, part)
    with pytest.raises(AttributeError) as caught:
        getattr(module, last)
    assert not hasattr(module, last)
    text = str(caught.value)
    assert text.startswith(f"module 'autograph{'.' if spaces else ''}{'.'.join(spaces)}' has no attribute '{last}'")
    return text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("layers", "ag.keras.layers"),
        ("compat.v1", "tf_upgrade_v2"),
        ("queue", "there are no queues"),
        ("train.Optimizer", "optimisers are Keras'"),
        ("io.match_filenames_once", "read and write other files with Python"),
        ("image.extract_glimpse", "images are arrays"),
        ("linalg.LinearOperatorDiag", "after ag.compat.install()"),
        ("placeholder", "they are a function's parameters"),
        ("Session", "no sessions"),
        ("log", "it is ag.math.log"),
        ("reduce_std", "it is ag.math.reduce_std"),
        ("random.matmul", "it is ag.matmul or ag.linalg.matmul"),
        ("random_normal", "it is ag.random.normal"),
        ("to_float", "it is ag.cast(x, float32)"),
        ("sum", "it is ag.reduce_sum"),
        ("reduce_summ", "Did you mean: 'reduce_sum'"),
        ("math.reduce_maxx", "Did you mean: 'reduce_max'"),
        ("GradientTap", "Did you mean: 'GradientTape'"),
    ],
)  # fmt: skip
def test_what_is_said(name: str, says: str) -> None:
    assert says in said(name)


def test_names_like_none_and_pythons_own() -> None:
    assert said("qqqqqq").endswith("'qqqqqq'")
    with pytest.raises(AttributeError, match="no attribute '__wrapped__'"):
        ag.__wrapped__


def test_the_names_that_are_said_are_there() -> None:
    """Of renamed ones the first word; of the others those that look like names of ours."""
    for target in absent._RENAMED.values():
        value = ag
        for part in re.match(r"[\w.]+", target)[0].split("."):
            value = getattr(value, part)
    wrong = []
    for key in absent._INSTEAD:
        if not key.endswith("*") and "." not in key and hasattr(ag, key):
            wrong.append(key)
    assert not wrong, "these are there now: their entries are dead"


def test_as_a_user_sees_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import autograph as ag\nag.layers.Dense(1)"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    lines = done.stderr.splitlines()
    files = [line for line in lines if "File " in line]
    assert files[0] == '  File "<string>", line 2, in <module>'
    assert len(files) == 1 or sys.version_info < (3, 11)  # before, frames of ours stay
    assert lines[-1].startswith("AttributeError: module 'autograph' has no attribute 'layers': they are Keras'")

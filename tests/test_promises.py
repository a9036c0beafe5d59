"""Every promise of docs/staging.md and docs/migrating.md is kept, by the programs in promises."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import autograph as ag
from runtime import nest
from tests.promises import CHECKED, ELSEWHERE, GIVEN, KEPT, REFUSED

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("staging", "migrating")
# What isn't there to be tried: newer Pythons than this one, speed, and prose about what is missing.
NOT_RUN = {
    "Speed. A vectorised loop",
    "A template string",
    "[row for row in t]",
    "A frozendict",
    "Syntax that a Python newer",
}


def promises(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [re.sub(r"[*`]", "", line[2:]) for line in text.splitlines() if line.startswith("- ")]


def interpreted(function):
    return ag.function(function, jit_compile=False)


def compiled(function):
    return ag.function(function, jit_compile=True)


MODES = [interpreted, compiled]


def named(rows):
    return [pytest.param(*row, id=row[1].__name__) for row in rows]


def values(result):
    return [np.asarray(each.numpy() if hasattr(each, "numpy") else each) for each in nest.flatten(result)]


@pytest.mark.parametrize("page", PAGES)
def test_every_promise_has_a_program(page):
    known = {row[0].replace("`", "") for row in (*KEPT, *REFUSED, *CHECKED)} | ELSEWHERE.keys() | NOT_RUN
    missing = [text for text in promises(page) if not text.startswith(tuple(known))]
    assert not missing


def test_every_program_has_a_promise():
    texts = [text for page in PAGES for text in promises(page)]
    for promise in {row[0] for row in (*KEPT, *REFUSED, *CHECKED)} | ELSEWHERE.keys() | NOT_RUN:
        assert any(text.startswith(promise) for text in texts), promise
    for file in ELSEWHERE.values():
        assert (ROOT / "tests" / file).exists(), file


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("promise", "program"), named(KEPT))
def test_as_in_python(promise, program, mode):
    ag.config.run_functions_eagerly(True)
    try:
        right = values(program(ag.constant(GIVEN)))
    finally:
        ag.config.run_functions_eagerly(False)
    got = values(mode(program)(ag.constant(GIVEN)))
    assert len(got) == len(right)
    for one, other in zip(got, right):
        if other.dtype.kind in "US" or one.dtype.kind in "OS":
            assert one.item().decode() == (other.item() if other.dtype.kind == "U" else other.item().decode())
        else:
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("promise", "program", "error", "words"), named(REFUSED))
def test_refused_at_its_line(promise, program, error, words, mode):
    with pytest.raises(error) as caught:
        mode(program)(ag.constant(GIVEN))
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert words in text
    assert Path(program.__code__.co_filename).name in text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("promise", "check"), named(CHECKED))
def test_checked(promise, check, mode):
    check(mode)

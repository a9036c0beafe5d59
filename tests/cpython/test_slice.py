"""A slice of `python -m tests.cpython`: CPython's own tests, on modules converted in place, show no new failure."""

from __future__ import annotations

import pytest

from tests.cpython.compare import compare
from tests.cpython.modules import SLICE, TARGETS


@pytest.mark.parametrize("target", SLICE)
def test_no_new_failures(target):
    pytest.importorskip(f"test.{TARGETS[target][1][0]}", reason="this Python comes without its own tests")
    found = compare(target, limit=120)
    assert found.converted > 0
    assert found.ran > 0
    assert found.new_failures == {}

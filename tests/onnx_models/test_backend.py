"""ONNX' own backend tests, but for those that backend_exceptions.txt lists with their reasons.

They are taken in parts, since making them all takes seconds, which collecting tests shouldn't.
"""

from __future__ import annotations

import onnx
import pytest
from packaging.version import Version

from tests.onnx_models import backend

PARTS = 24
pytestmark = pytest.mark.skipif(
    Version(onnx.__version__) < Version("1.23"), reason="backend_exceptions.txt is about the cases of ONNX 1.23"
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_cases(part):
    known = backend.exceptions()
    wrong = {}
    for name in list(backend.cases())[part::PARTS]:
        try:
            backend.run(name)
        except Exception as error:
            if name not in known:
                wrong[name] = f"{type(error).__name__}: {error}"
        else:
            if name in known and not known[name].startswith("Unimplemented"):
                wrong[name] = "passes, take it off backend_exceptions.txt"
    assert not wrong


def test_most_cases_are_run():
    assert len(backend.exceptions()) < 0.17 * len(backend.cases())

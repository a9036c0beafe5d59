"""A plugin of pytest: `pytest_plugins = ["autograph.testing.plugin"]` in `conftest.py`.

It has the functions of `autograph.testing` as fixtures, and the marker `no_retrace`: a test with it fails where a
function that had a trace is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from autograph import testing


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "no_retrace: fails where a traced function is traced again")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    if pyfuncitem.get_closest_marker("no_retrace") is None:
        return (yield)
    with testing.no_retrace():
        return (yield)


@pytest.fixture
def check_gradients() -> Callable[..., Any]:
    """`autograph.testing.check_gradients`."""
    return testing.check_gradients


@pytest.fixture
def check_modes() -> Callable[..., Any]:
    """`autograph.testing.check_modes`."""
    return testing.check_modes


@pytest.fixture
def no_retrace() -> Callable[..., Any]:
    """`autograph.testing.no_retrace`."""
    return testing.no_retrace

"""Runs CPython's tests of one target in this process: `python -m tests.cpython.runner TARGET {native,converted}`.

Prints one line of JSON: how many tests ran, which failed, how long it took, how many functions were converted.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
import time
import unittest
import warnings

from tests.cpython.in_place import convert_modules
from tests.cpython.modules import TARGETS


def run(target, convert):
    modules, tests = TARGETS[target]
    modules = [name for name in modules if _imports(name)]
    # Test modules import copies of their own, so they come first.
    suites = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(f"test.{name}"))
        for name in tests
        if _imports(f"test.{name}")
    )
    converted, sourceless = convert_modules(set(modules)) if convert else (0, [])
    began = time.perf_counter()
    output = io.StringIO()
    result = unittest.TextTestRunner(stream=output, verbosity=0).run(suites)
    bad = {str(test): text for test, text in (*result.failures, *result.errors)}
    bad |= {str(test): "unexpected success" for test in result.unexpectedSuccesses}
    return {
        "ran": result.testsRun,
        "bad": bad,
        "seconds": time.perf_counter() - began,
        "converted": converted,
        "sourceless": sourceless,
    }


def _imports(name):
    try:
        importlib.import_module(name)
    except (ImportError, unittest.SkipTest):  # a later Python's module, or a test for another platform
        return False
    return True


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    report = run(sys.argv[1], sys.argv[2] == "converted")
    # Some tests write to stdout too: the last line is the report.
    print("\n" + json.dumps(report))

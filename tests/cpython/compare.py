"""Native against converted: the tests that fail only when the module under test is converted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Comparison:
    """How one target did: tests run, functions converted, seconds each way, and the new failures with their texts."""

    target: str
    ran: int
    converted: int
    native_seconds: float
    seconds: float
    new_failures: dict[str, str]

    @property
    def good(self):
        return self.ran > 0 and self.converted > 0 and not self.new_failures


def compare(target, limit=1200):
    """Runs the target's tests natively and converted, each in a process of its own."""
    native, converted = _run(target, "native", limit), _run(target, "converted", limit)
    new = {name: text for name, text in converted["bad"].items() if name not in native["bad"]}
    if converted["ran"] != native["ran"]:
        new["number of tests"] = f"{native['ran']} tests ran natively, {converted['ran']} converted"
    return Comparison(target, converted["ran"], converted["converted"], native["seconds"], converted["seconds"], new)


def _run(target, how, limit):
    with tempfile.TemporaryDirectory() as folder:
        # Neither the folder nor the variables of whoever started this may matter to a test.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-m", "tests.cpython.runner", target, how]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return {
            "ran": 0,
            "bad": {f"the whole of {target}": done.stderr[-3000:] + done.stdout[-1000:]},
            "seconds": 0.0,
            "converted": 0,
        }

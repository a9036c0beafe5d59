"""`.ci`: the scripts of CI are sound, and end well where this machine lacks what they need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(path for path in (ROOT / ".ci").iterdir() if not path.suffix)
pytestmark = pytest.mark.skipif(shutil.which("bash") is None or os.name == "nt", reason="needs bash")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse_and_name_no_host(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n") and "\nset -euo pipefail\n" in text
    assert subprocess.run(["bash", "-n", script], timeout=60).returncode == 0
    assert re.findall(r"https?://\S+", text) == [], "registries and mirrors are those that the machine has configured"


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ({"id": "echo 1000"}, "only root can make a Debian root"),
        ({"id": "echo 0", "apt-get": "", "unshare": "exit 1"}, "this system doesn't let root mount anything"),
        (
            {"id": "echo 0", "apt-get": "", "unshare": "", "debootstrap": ""},
            "apt has no index of a Debian mirror (apt-get update gets it)",
        ),
        (
            {
                "id": "echo 0", "apt-get": "echo Debian mirror", "debootstrap": "",
                "unshare": 'for last; do :; done; [ "$last" = true ] || { echo no such suite; exit 1; }',
            },
            "debootstrap failed: no such suite",
        ),
    ],
    ids=["no root", "no mounts", "no mirror", "no suite"],
)  # fmt: skip
def test_where_no_newer_python_can_be_had_a_line_says_why(tmp_path: Path, missing: dict[str, str], why: str) -> None:
    """The commands are replaced by programs that do what such a machine's would."""
    commands = {"python3.14": "exit 1", "python3.15": "exit 1", **missing}
    for name, body in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        ["bash", ROOT / ".ci" / "newest"], env={**os.environ, "PATH": path, "TMPDIR": str(temporary)},
        text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"== skipped: the tests on Python 3.14 or newer: {why}\n"
    assert list(temporary.iterdir()) == []

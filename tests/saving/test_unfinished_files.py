"""What a process that is killed while it writes leaves behind, and who removes it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import autograph as ag
from runtime.storage import files

pytest.importorskip("fcntl")

_WRITER = """
import sys, time
from pathlib import Path
from runtime.storage import files

def write(name):
    Path(name).write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(60)

files.write_atomically(Path(sys.argv[1]), write)
"""


def age(path: Path) -> None:
    before = time.time() - 7200
    os.utime(path, (before, before))


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    place = tmp_path / "model.index"
    process = subprocess.Popen([sys.executable, "-c", _WRITER, str(place)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    (unfinished,) = tmp_path.glob(files.UNFINISHED + "*")
    age(unfinished)
    save = ag.train.Checkpoint(v=ag.Variable(1.0)).save
    save(str(tmp_path / "held"))
    assert unfinished.exists()  # somebody holds it
    process.kill()
    process.wait()
    process.stdout.close()
    unfinished.touch()
    save(str(tmp_path / "new"))
    assert unfinished.exists()  # it is too new
    age(unfinished)
    save(str(tmp_path / "old"))
    assert not unfinished.exists()
    assert not place.exists()


def test_a_dataset_that_is_being_stored_is_held(tmp_path: Path) -> None:
    rows = iter(ag.data.Dataset.range(5).cache(str(tmp_path / "rows")))
    next(rows)
    (unfinished,) = tmp_path.glob(files.UNFINISHED + "*")
    age(unfinished)
    ag.train.Checkpoint(v=ag.Variable(1.0)).save(str(tmp_path / "other"))
    assert unfinished.exists()
    assert [int(row) for row in rows] == [1, 2, 3, 4]
    assert not unfinished.exists()


def test_links_and_other_files_stay(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("kept")
    age(target)
    link = tmp_path / (files.UNFINISHED + "link")
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    folder = tmp_path / (files.UNFINISHED + "folder")
    folder.mkdir()
    age(folder)
    other = tmp_path / ".written"
    other.touch()
    age(other)
    files.remove_abandoned(tmp_path)
    assert target.read_text() == "kept" and other.exists() and folder.is_dir()

"""Progress bars: on a terminal, after a delay, and nowhere else."""

import importlib.util
import io
import os
import struct
import subprocess
import sys
import threading
from contextlib import redirect_stderr

import pytest

import autograph as ag
from runtime import progress as progresses
from runtime.progress import is_possible, progress

needs_tqdm = pytest.mark.skipif(importlib.util.find_spec("tqdm") is None, reason="needs the progress extra")


class Terminal(io.StringIO):
    """Says that it is a terminal, and when something is written to it."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        super().write(text)
        if "[00:" in text:
            self.written.set()
        return len(text)


@pytest.fixture
def terminal(monkeypatch):
    """Tests put it in the place of standard error themselves: pytest puts its own there after fixtures."""
    monkeypatch.setattr(progresses, "DELAY", 0.0)
    return Terminal()


@needs_tqdm
def test_a_terminal_shows_a_bar(terminal):
    with redirect_stderr(terminal), progress("reading", "files", 4) as bar:
        bar.advance()
        assert terminal.written.wait(60)
    assert "reading:" in terminal.getvalue()
    assert "of 4 files" in terminal.getvalue()
    # It goes when the work is done.
    assert terminal.getvalue().endswith("\r")
    assert not [thread for thread in threading.enumerate() if thread.name == "autograph-progress"]


@needs_tqdm
def test_what_is_inside_another_one_shows_no_bar(terminal):
    with redirect_stderr(terminal), progress("outer"):
        assert terminal.written.wait(60)
        with progress("inner"):
            assert len([t for t in threading.enumerate() if t.name == "autograph-progress"]) == 1
    assert "inner" not in terminal.getvalue()


@needs_tqdm
def test_short_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progresses, "DELAY", 3600.0)
    with redirect_stderr(terminal):
        assert is_possible()
        with progress("short"):
            pass
    assert terminal.getvalue() == ""


def test_files_and_programs_that_switch_it_off_see_nothing(terminal):
    assert ag.config.shows_progress()
    ag.config.show_progress(False)
    try:
        assert not ag.config.shows_progress()
        with redirect_stderr(terminal), progress("off"):
            assert not is_possible()
            assert "autograph-progress" not in [thread.name for thread in threading.enumerate()]
    finally:
        ag.config.show_progress(True)
    for stream in (io.StringIO(), None):
        with redirect_stderr(stream):
            assert not is_possible()
    with pytest.raises(TypeError, match="True or False, not 1"):
        ag.config.show_progress(1)


def test_without_tqdm_nothing_is_shown(terminal, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with redirect_stderr(terminal), progress("without"):
        pass
    assert terminal.getvalue() == ""


PROGRAM = """
from runtime import progress
progress.DELAY = 0.0
import autograph as ag

@ag.function(jit_compile=True)
def my_model(x):
    return ag.reduce_sum(ag.exp(x) * x)

my_model(ag.ones([10]))
print("done")
"""


@needs_tqdm
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs pseudo-terminals")
def test_compiling_shows_a_bar(tmp_path):
    import fcntl
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "AUTOGRAPH_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=theirs, check=True, text=True
    )
    os.set_blocking(ours, False)
    said = os.read(ours, 1 << 16).decode()
    os.close(theirs)
    os.close(ours)
    assert done.stdout == "done\n"
    assert "compiling my_model, 0 kernels done [00:0" in said

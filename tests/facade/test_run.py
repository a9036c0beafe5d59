"""`autograph run`: scripts that say `import tensorflow`, run as with `python`."""

import subprocess
import sys

import pytest

SCRIPT = """\
import sys
import beside
import tensorflow as tf

class Thing:
    pass

@tf.function
def double(x):
    return x * 2

def fail():
    raise ValueError("on purpose")

if __name__ == "__main__":
    import pickle
    print(sys.argv[1:], __file__.endswith("script.py"), beside.VALUE, int(double(tf.constant(21))))
    print(type(pickle.loads(pickle.dumps(Thing()))).__name__)
    if "--fail" in sys.argv:
        fail()
    if "--exit" in sys.argv:
        sys.exit(7)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    return tmp_path


def run(*arguments, folder=None):
    return subprocess.run(
        [sys.executable, "-m", "autograph", "run", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False, cwd=folder,
    )  # fmt: skip


def test_a_script_with_arguments(folder):
    done = run(folder / "script.py", "a", "--b", "3")
    assert (done.returncode, done.stdout) == (0, "['a', '--b', '3'] True 5 42\nThing\n"), done.stderr


def test_an_error_shows_the_script_alone(folder):
    done = run(folder / "script.py", "--fail")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: on purpose"
    assert all("script.py" in line for line in lines if line.startswith("  File"))


def test_the_exit_code_is_the_scripts(folder):
    assert run(folder / "script.py", "--exit").returncode == 7


def test_a_module(folder):
    done = run("-m", "script", "x", folder=folder)
    assert (done.returncode, done.stdout) == (0, "['x'] True 5 42\nThing\n"), done.stderr


def test_a_file_that_is_not_there(folder):
    done = run(folder / "missing.py")
    assert done.returncode == 2
    assert "missing.py: No such file or directory" in done.stderr


def test_a_script_with_a_syntax_error(folder):
    (folder / "script.py").write_text("x = (\n")
    done = run(folder / "script.py")
    assert done.returncode == 1
    assert "SyntaxError: '(' was never closed" in done.stderr
    assert "facade" not in done.stderr

"""The command line, in this process and as `python -m autograph`."""

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from autograph import cli
from autograph.errors import ConversionError, Location

ROOT = Path(__file__).resolve().parent.parent
MODULE = """\
raise SystemExit("this file must not be run")

def double(x, n):
    while n > 0:
        x = x * 2
        n -= 1
    return x


class Cell:
    def call(self, x):
        def inner(y):
            return y if y > 0 else -y
        return inner(x)

    async def later(self):
        return 1


try:
    import fast
except ImportError:
    def fallback(x):
        if x:
            return 1
        return 2

square = lambda x: x * x if x > 0 else 0


def isinstance(x, kind):
    return helper(x)


def uses_own_isinstance(x):
    return isinstance(x, int)
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


def run(capsys, *arguments):
    code = cli.main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def run_process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "autograph", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
        **options,
    )


def test_prints_a_function(module, capsys):
    code, out, err = run(capsys, "to-code", f"{module}:double")
    assert (code, err) == (0, "")
    assert out.startswith("def double(x, n):\n")
    assert "def loop_body():" in out
    assert "nonlocal" in out
    assert "ag__.while_stmt(loop_test, loop_body, (" in out
    assert out.endswith("\n")
    compile(out, "converted", "exec")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Cell.call", "def call(self, x):"),
        ("Cell.call.inner", "def inner(y):"),
        ("Cell.call.<locals>.inner", "ag__.if_exp("),
        ("Cell.later", "async def later(self):"),
        ("fallback", "ag__.if_stmt("),
        ("square", "lambda x: "),
    ],
)
def test_finds_functions_wherever_they_are(module, capsys, name, expected):
    code, out, err = run(capsys, "to-code", f"{module}:{name}")
    assert (code, err) == (0, "")
    assert expected in out


def test_knows_that_the_file_shadows_a_builtin(module, capsys):
    _, out, _ = run(capsys, "to-code", f"{module}:uses_own_isinstance")
    assert "ag__.converted_call(isinstance)(x, int)" in out


def test_each_pass(module, capsys):
    code, out, _ = run(capsys, "to-code", "--each-pass", f"{module}:double")
    assert code == 0
    sections = out.split("# after ")
    assert len(sections) >= 3
    assert len(sections) == len(set(sections))
    assert "while n > 0" in sections[1]
    assert "ag__.while_stmt" in sections[-1]


def test_prints_what_to_code_returns(tmp_path, capsys, monkeypatch):
    import autograph as ag

    path = tmp_path / "same_as_to_code.py"
    path.write_text(MODULE.partition("\n")[2], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import same_as_to_code

    _, out, _ = run(capsys, "to-code", f"{path}:double")
    assert out.strip() == ag.autograph.to_code(same_as_to_code.double).strip()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.py:f", "cannot read nowhere.py: No such file or directory"),
        (".:f", "cannot read .: Is a directory"),
        ("nothing", "expected FILE.py:function, got 'nothing'"),
        ("file.py:", "expected FILE.py:function, got 'file.py:'"),
        (":f", "expected FILE.py:function, got ':f'"),
    ],
)
def test_wrong_targets(capsys, target, message):
    assert run(capsys, "to-code", target) == (2, "", f"autograph: {message}\n")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("doubel", "did you mean double?"),
        ("inner", "did you mean Cell.call.inner?"),
        ("Cell", "Cell."),
        ("zzz", "the file defines double, Cell.call, Cell.call.inner, Cell.later, fallback, square, isinstance"),
    ],
)
def test_missing_functions(module, capsys, name, hint):
    code, out, err = run(capsys, "to-code", f"{module}:{name}")
    assert (code, out) == (2, "")
    assert err.startswith(f"autograph: no function '{name}' in {module}: ")
    assert hint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x = 1\ndef f(:\n    pass\n", ":2: syntax error: "),
        (b"def f():\n  x = '\xff'\n", "cannot decode "),
        (b"# coding: klingon\n", "cannot decode "),
        (b"x = 1\n", "the file defines no functions"),
        (b"\0", ""),
    ],
)
def test_bad_files(tmp_path, capsys, content, message):
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    code, out, err = run(capsys, "to-code", f"{path}:f")
    assert (code, out) == (2, "")
    assert err.startswith("autograph: ")
    assert str(path) in err
    assert message in err
    assert err.count("\n") == 1


def test_honours_the_coding_cookie(tmp_path, capsys):
    path = tmp_path / "latin.py"
    path.write_bytes("# coding: latin-1\ndef f():\n    return 'é'\n".encode("latin-1"))
    code, out, _ = run(capsys, "to-code", f"{path}:f")
    assert code == 0
    assert "é" in out


def test_without_a_command_prints_help(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert out.startswith("usage: autograph")


@pytest.mark.parametrize("arguments", [["--help"], ["to-code", "--help"]])
def test_help_has_examples(capsys, arguments):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 0
    assert "autograph to-code model.py:Cell.call" in capsys.readouterr().out


def test_unknown_commands_exit_with_2(capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["to-cobol", "x.py:f"])
    assert exit_.value.code == 2
    assert "invalid choice: 'to-cobol'" in capsys.readouterr().err


def test_as_a_process(module):
    done = run_process("to-code", f"{module}:double")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ag__.while_stmt" in done.stdout
    missing = run_process("to-code", f"{module}:triple")
    assert missing.returncode == 2
    assert missing.stdout == ""
    assert "Traceback" not in missing.stderr
    version = run_process("--version")
    assert version.returncode == 0
    assert version.stdout.startswith("autograph ")


@pytest.mark.skipif(os.name != "posix", reason="pipes that break are a POSIX matter")
def test_a_reader_that_leaves_early_is_no_error(module):
    command = f"{sys.executable} -m autograph to-code --each-pass {module}:double | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert done.stderr == ""


def test_passes_is_the_same_as_each_pass(module, capsys):
    assert run(capsys, "to-code", "--passes", f"{module}:double") == run(
        capsys, "to-code", "--each-pass", f"{module}:double"
    )


def test_several_functions_and_whole_files(module, capsys):
    _, out, _ = run(capsys, "to-code", f"{module}:double", f"{module}:fallback")
    assert out.index("def double") < out.index("def fallback")
    code, out, err = run(capsys, "to-code", "--all", module)
    assert (code, err) == (0, "")
    names = [line for line in out.splitlines() if line.startswith("# ")]
    assert names[:4] == ["# double", "# Cell.call", "# Cell.later", "# fallback"]  # inner is in Cell.call
    compile(out, "converted", "exec")


def test_standard_input(module, capsys, monkeypatch):
    text = MODULE.partition("\n")[2]
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code, out, _ = run(capsys, "to-code", "-:double")
    assert (code, out.startswith("def double(x, n):")) == (0, True)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code, out, _ = run(capsys, "to-code", "--all", "-")
    assert (code, out.startswith("# double\n")) == (0, True)
    monkeypatch.setattr("sys.stdin", io.StringIO("def f(:"))
    assert run(capsys, "to-code", "--check", "-")[::2] == (2, "autograph: <stdin>:1: syntax error: invalid syntax\n")


def test_a_whole_file_must_be_asked_for(module, capsys):
    code, out, err = run(capsys, "to-code", module)
    assert (code, out) == (2, "")
    assert "--all" in err


def test_check(module, capsys, monkeypatch):
    assert run(capsys, "to-code", "--check", module, module) == (0, "", "")
    from autograph.commands import to_code

    real = to_code.convert_tree

    def fails(node, **options):
        if getattr(node, "name", "") == "fallback":
            place = Location(options["filename"], node.lineno, node.name, node.col_offset)
            raise ConversionError("can't", location=place, cause="a reason", fix="a way")
        return real(node, **options)

    monkeypatch.setattr(to_code, "convert_tree", fails)
    code, out, err = run(capsys, "to-code", "--check", module)
    line = MODULE.splitlines().index("    def fallback(x):") + 1
    assert (code, out) == (1, "")
    assert f"{module}:{line}, in fallback" in err
    assert "def fallback(x):\n      ^\n" in err
    code, out, _ = run(capsys, "to-code", "--all", module)
    assert code == 1
    assert "# double" in out


def test_diff(module, capsys):
    code, out, _ = run(capsys, "to-code", "--diff", "--width", "80", f"{module}:double")
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line[38:41].strip() == "│" for line in lines)
    left = [line[:38].rstrip() for line in lines]
    assert [text for text in left if text] == [line for line in MODULE.splitlines()[2:7]]
    assert lines[0].split("│")[1].strip() == "def double(x, n):"
    assert "\033" not in out
    _, coloured, _ = run(capsys, "to-code", "--diff", "--color", "always", "--width", "80", f"{module}:double")
    assert re.sub(r"\033\[\d+m", "", coloured).split() == out.split()
    assert "\033[32m" in coloured


def test_diff_wraps_long_lines(tmp_path, capsys):
    path = tmp_path / "long.py"
    path.write_text(f"def f(x):\n    return [{', '.join(map(str, range(40)))}]\n", encoding="utf-8")
    _, out, _ = run(capsys, "to-code", "--diff", "--width", "60", f"{path}:f")
    assert max(map(len, out.splitlines())) <= 60
    left = "".join(line[:28].strip() for line in out.splitlines())
    assert "38,39]" in left.replace(" ", "")


@pytest.mark.parametrize("command", [[], ["to-code"], ["graph"]])
def test_help_has_examples_that_parse(command, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([*command, "--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    examples = [line.strip() for line in shown.splitlines() if line.strip().startswith("autograph ")]
    assert examples
    for example in examples:
        words = shlex.split(example.split("   ")[0])[1:]
        cli._parser().parse_args([word.replace("-:", "<stdin>:") for word in words])

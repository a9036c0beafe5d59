"""`autograph graph`: programs, kernels, pictures and pages of functions in a file."""

import pytest

from tests.test_cli import run

GRAPH = """\
import autograph as ag

@ag.function
def step(x, n, scale=1.0):
    while n > 0:
        x = x * scale
        n -= 1
    return x

def plain(x):
    return ag.reduce_sum(x)

def wrong(x):
    if x > 0:
        y = x
    else:
        y = object()
    return y + 1

def texts(x):
    return ag.strings.length(x)

@ag.function(input_signature=[ag.TensorSpec([None], ag.float32), ag.TensorSpec([], ag.int32)])
def signed(x, n):
    return x * ag.cast(n, ag.float32)

class Model(ag.Module):
    @ag.function
    def run(self, x):
        return x + 1.0

NUMBER = 3
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(GRAPH, encoding="utf-8")
    return path


def test_graph(program, capsys):
    signature = "x: float32[None, 3], n: int32, scale=2.5"
    code, out, err = run(capsys, "graph", f"{program}:step", "--signature", signature)
    assert (code, err) == (0, "")
    assert out.startswith("graph step(%x: float32[?, 3], %n: int32[]")
    assert "{value=2.5}" in out
    code, out, err = run(capsys, "graph", f"{program}:step", "--kernel", "--signature", signature)
    assert (code, err) == (0, "")
    assert "def kernel(x, n):" in out
    assert "while n" in out
    compile(out, "kernel", "exec")


def test_graph_as_a_picture_and_a_page(program, tmp_path, capsys, monkeypatch):
    signature = ["--signature", "x: float32[None, 3], n: int32"]
    for form, start in (("dot", 'digraph "step" {'), ("html", "<!DOCTYPE html>")):
        file = tmp_path / f"step.{form}"
        assert run(capsys, "graph", f"{program}:step", *signature, f"--{form}", file) == (0, "", "")
        assert file.read_text(encoding="utf-8").startswith(start)
    code, out, _ = run(capsys, "graph", f"{program}:step", *signature, "--dot", "-")
    assert (code, out.startswith("digraph")) == (0, True)
    code, _, err = run(capsys, "graph", f"{program}:step", *signature, "--html", tmp_path / "no" / "step.html")
    assert (code, "cannot write" in err) == (2, True)
    monkeypatch.setattr("shutil.which", lambda name: None)
    code, _, err = run(capsys, "graph", f"{program}:step", *signature, "--svg", tmp_path / "step.svg")
    assert (code, "Graphviz" in err) == (2, True)


def test_graph_with_lines(program, capsys):
    code, out, _ = run(capsys, "graph", f"{program}:step", "--signature", "x: float32, n: int32, scale=2.5", "--lines")
    assert code == 0
    assert "# program.py:6" in out


def test_graph_of_a_plain_function(program, capsys):
    code, out, _ = run(capsys, "graph", f"{program}:plain", "--signature", "x: float64[...]")
    assert (code, out.startswith("graph plain(%x: float64[?]):")) == (0, True), out


@pytest.mark.parametrize("command", ["graph", "explain"])
def test_of_a_function_with_a_signature_and_of_a_method(program, capsys, command):
    code, out, err = run(capsys, command, f"{program}:signed")
    assert (code, err) == (0, "")
    assert "x: float32[?]" in out and "n: int32[]" in out
    code, out, _ = run(capsys, command, f"{program}:signed", "--signature", "x: float32[3], n: int32")
    assert (code, "x: float32[3]" in out) == (0, True)
    code, out, err = run(capsys, command, f"{program}:Model.run", "--signature", "x: float32[3]")
    assert (code, err) == (0, "")
    assert "x: float32[3]" in out and "self" not in out


@pytest.mark.parametrize(
    ("name", "signature", "code", "message"),
    [
        ("step", "x float32", 2, "expected `name: dtype[shape]` or `name=value`, got 'x float32'"),
        ("step", "x: float33", 2, "'float33' is no dtype and shape"),
        ("step", "x: float32[-1]", 2, "'float32[-1]' is no dtype and shape"),
        ("step", "x=f()", 2, "'f()' is no Python literal"),
        ("step", "x: float32", 2, "can't be called so: missing a required argument"),
        ("wrong", "x: float32", 1, "wrong can't be traced: "),
        ("nothing", "", 2, "no function 'nothing'"),
        ("NUMBER", "", 2, "is no function"),
    ],
)
def test_graph_errors(program, capsys, name, signature, code, message):
    found, out, err = run(capsys, "graph", f"{program}:{name}", "--signature", signature)
    assert (found, out) == (code, "")
    assert message in err


def test_graph_of_a_file_that_fails(tmp_path, capsys):
    path = tmp_path / "fails.py"
    path.write_text("1 / 0", encoding="utf-8")
    code, _, err = run(capsys, "graph", f"{path}:f")
    assert (code, err) == (2, f"autograph: {path} fails when it is run: ZeroDivisionError: division by zero\n")
    assert run(capsys, "graph", "nowhere.py:f")[0] == 2

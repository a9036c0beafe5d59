"""`autograph graph`: programs, kernels, pictures and pages of functions in a file."""

from fnmatch import fnmatch

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

def mixed(x, n):
    x = ag.exp(x)
    while n > 0:
        x = ag.ensure_shape(ag.numpy_function(abs, [x], ag.float32), [4])
        for _ in ag.range(n):
            x = x * 1.5
        n -= 1
    return ag.tanh(ag.exp(x))

def repeated(x):
    for _ in range(3):
        x = ag.ensure_shape(ag.numpy_function(abs, [ag.tanh(x)], ag.float32), [4])
    return x

def misspelt(x):
    return x + undefined

def integers(n):
    return n + 1

def redundant(x):
    return -(-ag.exp(x)) + ag.exp(x)

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


def test_passes(program, capsys):
    code, out, err = run(capsys, "graph", f"{program}:redundant", "--passes", "--signature", "x: float32")
    assert (code, err) == (0, "")
    first, *changes = out.strip().split("\n\n")
    assert first.startswith("# before the passes\ngraph redundant(%x: float32[]):\n  %exp: float32[] = exp(%x)")
    by_name = {text.partition("\n")[0]: text for text in changes}
    assert "-   %exp_1: float32[] = exp(%x)" in by_name["# after common subexpressions"].splitlines()
    assert {"# after rules", "# after dead code"} <= by_name.keys()
    assert "    %exp: float32[] = exp(%x)" in changes[-1].splitlines()
    code, out, err = run(capsys, "graph", f"{program}:texts", "--passes", "--signature", "x: string")
    assert (code, err, out.rstrip().rpartition("\n")[2]) == (0, "", "# no pass changes it")


def test_a_kernel_for_each_native_part(program, capsys):
    """Between them, why operations stay on the interpreter; native loops in what stays, too."""
    signature = ["--signature", "x: float32[4], n: int32"]
    code, out, err = run(capsys, "graph", f"{program}:mixed", "--kernel", *signature)
    assert (code, err) == (0, "")
    heads = [line for line in out.splitlines() if line.startswith("#")]
    assert heads == [
        "# kernel 1",
        "# on the interpreter: host_call  (program.py:26): op 'host_call' can't be compiled (so neither has the while "
        "around it)",
        "# kernel 2 (the loop, once it has run for a while)",
        "# kernel 3",
    ]
    _, first, loop, last = out.split("\ndef kernel(")
    assert "lib.exp" in first and "np.float32(1.5)" in loop and "lib.tanh" in last
    compile(out, "kernels", "exec")
    code, out, err = run(capsys, "graph", f"{program}:mixed", "--llvm", *signature)
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if "kernel " in line and line.startswith("; ")] == [
        "; kernel 1", heads[2].replace("#", ";"), "; kernel 3",
    ]  # fmt: skip


def test_equal_parts_are_shown_once(program, capsys):
    _, out, _ = run(capsys, "graph", f"{program}:repeated", "--kernel", "--signature", "x: float32[4]")
    assert [line for line in out.splitlines() if "# kernel" in line] == [
        "# kernel 1", "# kernel 1 again", "# kernel 1 again",
    ]  # fmt: skip
    assert out.count("def kernel") == 1


def test_llvm_and_assembly(program, capsys):
    signature = ["--signature", "x: float32[None, 3], n: int32, scale=2.5"]
    texts = {}
    for stage in ("llvm", "optimized-llvm", "asm"):
        code, texts[stage], err = run(capsys, "graph", f"{program}:step", f"--{stage}", *signature)
        assert (code, err) == (0, "")
    assert '%"status" = alloca i32' in texts["llvm"] and "define ptr @kernel(" in texts["llvm"]
    assert "target triple" in texts["optimized-llvm"] and "%status = alloca" not in texts["optimized-llvm"]
    assert "define ptr @kernel(" in texts["optimized-llvm"]
    assert "kernel:\n" in texts["asm"] and "define" not in texts["asm"]


def test_stages_of_the_other_compiler(program, capsys, monkeypatch):
    monkeypatch.setenv("AUTOGRAPH_COMPILER", "numba")
    command = ["graph", f"{program}:plain", "--signature", "x: float64[8]"]
    code, out, err = run(capsys, *command, "--optimized-llvm")
    assert (code, err, "define " in out) == (0, "", True)
    code, out, err = run(capsys, *command, "--asm")
    assert (code, err, ".globl" in out) == (0, "", True)
    code, out, err = run(capsys, *command, "--llvm")
    assert (code, out) == (1, "")
    assert err == "autograph: numba has no llvm text of 'plain': numba gives its LLVM text only after optimisation\n"


@pytest.mark.parametrize("stage", ["graph", "passes", "kernel", "llvm"])
@pytest.mark.parametrize("gradient", ["forward", "backward"])
def test_stages_of_gradients(program, capsys, stage, gradient):
    options = [] if stage == "graph" else [f"--{stage}"]
    signature = "x: float32[3], n: int32, scale=2.5"
    command = ["graph", f"{program}:step", *options, "--gradient", gradient, "--signature", signature]
    code, out, err = run(capsys, *command)
    assert (code, err) == (0, "")
    if stage in ("graph", "passes"):
        assert ("graph gradient of step(" if gradient == "backward" else "graph step with residuals(") in out
    else:
        assert ("def kernel(" if stage == "kernel" else "define ptr @kernel(") in out


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
        ("step", "x: float33", 2, "'float33' isn't a dtype and shape"),
        ("step", "x: float32[-1]", 2, "'float32[-1]' isn't a dtype and shape"),
        ("step", "x=f()", 2, "'f()' isn't a Python literal"),
        ("step", "x: float32", 2, "can't be called with this signature: missing a required argument"),
        ("wrong", "x: float32", 1, "wrong can't be traced: "),
        ("misspelt", "x: float32", 1, "can't be traced: NameError: name 'undefined' is not defined (*program.py:38)"),
        ("step", "x: string, n: int32", 1, "can't be traced: DTypeError: *program.py:6*"),
        ("nothing", "", 2, "no function 'nothing'"),
        (
            "texts --kernel",
            "x: string",
            1,
            "has no native kernel. On the interpreter: string_length  (program.py:21): "
            "op 'string_length' can't be compiled",
        ),
        ("texts --asm", "x: string", 1, "'texts' has no native kernel. On the interpreter: string_length"),
        ("integers --gradient backward", "n: int32", 1, "'integers' has no gradient: no floating-point result"),
        ("NUMBER", "", 2, "isn't a function"),
    ],
)
def test_graph_errors(program, capsys, name, signature, code, message):
    name, *options = name.split()
    found, out, err = run(capsys, "graph", f"{program}:{name}", *options, "--signature", signature)
    assert (found, out) == (code, "")
    assert fnmatch(err.strip(), f"*{message.replace('[', '[[]')}*")


def test_graph_of_a_file_that_fails(tmp_path, capsys):
    path = tmp_path / "fails.py"
    path.write_text("1 / 0", encoding="utf-8")
    code, _, err = run(capsys, "graph", f"{path}:f")
    assert (code, err) == (2, f"autograph: running {path} failed: ZeroDivisionError: division by zero\n")
    for options in ([], ["--passes"], ["--asm"]):
        code, out, err = run(capsys, "graph", "nowhere.py:f", *options)
        assert (code, out, err) == (2, "", "autograph: cannot read nowhere.py: no such Python file\n")
    with pytest.raises(SystemExit):
        run(capsys, "graph", f"{path}:f", "--kernel", "--asm")
    assert "not allowed with argument" in capsys.readouterr().err

"""What commands can be pointed at: methods, instances, notebooks saved as text."""

from __future__ import annotations

from tests.test_cli import run


def test_graph_of_methods(tmp_path, capsys):
    path = tmp_path / "cells.py"
    path.write_text(
        "class Cell:\n"
        "    def call(self, x):\n"
        "        return x + 1.0\n"
        "class Sized:\n"
        "    def __init__(self, n):\n"
        "        self.n = n\n"
        "    def call(self, x):\n"
        "        return x + self.n\n"
        "sized = Sized(2.0)\n",
        encoding="utf-8",
    )
    for name in ("Cell.call", "sized.call"):
        code, out, err = run(capsys, "graph", f"{path}:{name}", "--signature", "x: float32[2]")
        assert (code, out.startswith("graph call(%x: float32[2]"), err) == (0, True, "")
    code, _, err = run(capsys, "graph", f"{path}:Sized.call", "--signature", "x: float32[2]")
    assert code == 2
    assert "Sized() can't be created: TypeError" in err
    assert run(capsys, "graph", f"{path}:Cell.cal")[0] == 2


def test_notebook_lines_are_passed_over(tmp_path, capsys):
    path = tmp_path / "cell.py"
    path.write_text("%matplotlib inline\n!ls\ndef f(x):\n    %time\n    return x and 1\n?f\n", encoding="utf-8")
    code, out, err = run(capsys, "to-code", f"{path}:f")
    assert (code, err) == (0, "")
    assert "ag__.and_(x, lambda: 1)" in out

"""Statements that would change a tensor: the error shows the user's statement, and one that does what was meant."""

from __future__ import annotations

import linecache
import re
import sys
import traceback

import numpy as np
import pytest

import autograph as ag

_numbers = iter(range(10**6))


def run(text: str, names: dict) -> None:
    """Runs a program whose text Python's tools find."""
    filename = f"<immutable {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), names)


def refusal(text: str, **names) -> str:
    with pytest.raises(TypeError) as caught:
        run(text, {"ag": ag, **names})
    files = [each.filename for each in traceback.extract_tb(caught.value.__traceback__)][1:]
    if sys.version_info >= (3, 11):  # before, a frame of ours stays
        assert all(name.startswith("<immutable") or name == __file__ for name in files), files
    return str(caught.value)


def fixes(message: str) -> list[str]:
    return re.findall(r"^  +(?:fix:|or) (.*)$", message, re.MULTILINE)


STATEMENTS = [
    # statement, what x is, what NumPy makes of it
    ("x[i] = v", [3]),
    ("x[i] += v", [3]),
    ("x[i] -= v * 2.0", [3]),
    ("x[i] *= v - 1.0", [3]),
    ("x[0] = 3.0", [3]),
    ("x[-1] = 3.0", [3]),
    ("x[i] **= 2", [3]),
    ("x[i, 0] = v", [3, 2]),
    ("x[i, 1] += v", [3, 2]),
    ("x[i] = row", [3, 2]),
    ("x[i] += row", [3, 2]),
    ("x[i] += v", [3, 2]),
    ("x[i] = v", [3, 2]),
    ("x[i] = 2.0", [3, 2]),
    ("x[1:3] = pair", [4]),
    ("x[:2] = pair", [4]),
    ("x[2:] += pair", [4]),
    ("x[1:3] = v", [4]),
    ("x[:] = v", [4]),
    ("x[1:3] -= v", [4]),
    ("x[x > 1.0] = 0.0", [4]),
    ("x[x > 1.0] *= 2.0", [4]),
]
VALUES = {"i": 1, "v": 5.0, "row": [7.0, 8.0], "pair": [9.0, 10.0]}


def tensors() -> dict:
    return {name: value if name == "i" else ag.constant(value) for name, value in VALUES.items()}


@pytest.mark.parametrize(("statement", "shape"), STATEMENTS, ids=lambda each: str(each))
def test_the_rewritten_statement_does_what_was_meant(statement: str, shape: list[int]) -> None:
    start = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = {"x": start.copy(), **{k: v if k == "i" else np.float32(v) for k, v in VALUES.items()}}
    exec(statement, expected)
    message = refusal(statement, x=ag.constant(start), **tensors())
    assert statement in message and "'EagerTensor' object does not support item assignment" in message
    names = {"ag": ag, "x": ag.constant(start), **tensors()}
    exec(fixes(message)[0], names)
    np.testing.assert_allclose(names["x"].numpy(), expected["x"])
    assert "ag.TensorArray" in message and "ag.Variable" in message
    variable = re.search(r"`(state\[.*)`", message)[1]
    if "x > 1.0" not in statement:  # masks aren't slices of variables
        names = {"ag": ag, "state": ag.Variable(start), "x": start, **tensors()}
        exec(variable, names)
        np.testing.assert_allclose(names["state"].numpy(), expected["x"])


@pytest.mark.parametrize(("statement", "shape"), STATEMENTS, ids=lambda each: str(each))
@pytest.mark.parametrize("loop", ["for i in ag.range(1, 2):", "for i in [1]:", "if ag.reduce_sum(x) > 0.0:"])
def test_staged_code_is_told_the_same(statement: str, shape: list[int], loop: str) -> None:
    def text(change: str) -> str:
        return (
            f"@ag.function\ndef step(x, v, row, pair, i):\n    {loop}\n        {change}\n    return x\n"
            "result = step(x, v, row, pair, i)\n"
        )

    start = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    message = refusal(text(statement), x=ag.constant(start), **tensors())
    assert "'SymbolicTensor' object does not support item assignment" in message
    assert ", in step" in message and f"        {statement}" in message.replace("      ", "        ")
    names = {"ag": ag, "x": ag.constant(start), **tensors()}
    run(text(fixes(message)[0]), names)
    expected = {"x": start.copy(), **{k: v if k == "i" else np.float32(v) for k, v in VALUES.items()}}
    exec(statement, expected)
    np.testing.assert_allclose(names["result"].numpy(), expected["x"])


@pytest.mark.parametrize("statement", ["x[:, 0] = v", "x[::2] = v", "x[None] = v", "x[0, 0:1] += v", "x[..., 1] = v"])
def test_parts_that_only_a_variable_takes(statement: str) -> None:
    message = refusal(statement, x=ag.zeros([3, 2]), **tensors())
    assert fixes(message)[0].startswith("if a loop makes all elements")
    names = {"ag": ag, "state": ag.Variable(ag.zeros([3, 2])), **tensors()}
    expected = {"x": np.zeros([3, 2], np.float32), "v": np.float32(5.0)}
    exec(statement, expected)
    if "None" not in statement:
        exec(re.search(r"`(state\[.*)`", message)[1], names)
        np.testing.assert_allclose(names["state"].numpy(), expected["x"])


def test_other_names_and_places() -> None:
    class Box:
        pass

    box = Box()
    box.x = ag.zeros([3])
    assert fixes(refusal("box.x[1] = 2.0", box=box))[0] == ("box.x = ag.tensor_scatter_nd_update(box.x, [[1]], [2.0])")
    tf = {"tf": ag, "d": {"a": ag.zeros([3])}}
    with pytest.raises(TypeError) as caught:
        run("d['a'][1] += 2.0", tf)
    assert fixes(str(caught.value))[0] == "d['a'] = tf.tensor_scatter_nd_add(d['a'], [[1]], [2.0])"
    # Two in a line, several lines, a target among others, no source at all.
    message = refusal("y = 1; x[0] = 2.0; x[1] = 3.0", x=ag.zeros([3]))
    assert "[[0]]" in fixes(message)[0]
    assert "[[1]], [2.0 + 3.0]" in fixes(refusal("x[\n    1\n] = (2.0 +\n    3.0)", x=ag.zeros([3])))[0]
    assert "[[i]], [v]" in fixes(refusal("for x[0] in [1.0]:\n    pass", x=ag.zeros([3])))[0]
    assert fixes(refusal("x[0], y = 1.0, 2.0", x=ag.zeros([3])))
    with pytest.raises(TypeError, match=r"x = ag.tensor_scatter_nd_update\(x, \[\[i\]\], \[v\]\)"):
        exec("x[0] = 1.0", {"x": ag.zeros([3])})


def test_items_that_are_deleted() -> None:
    message = refusal("del x[1]", x=ag.constant([1.0, 2.0, 3.0]))
    assert "'EagerTensor' object doesn't support item deletion" in message
    names = {"ag": ag, "x": ag.constant([1.0, 2.0, 3.0])}
    exec(fixes(message)[0], names)
    assert names["x"].numpy().tolist() == [1.0, 3.0]


def test_variables_and_arrays_say_their_methods() -> None:
    state = ag.Variable([1.0, 2.0, 3.0])
    for statement, expected in (("state[0] = 5.0", [5, 2, 3]), ("state[1:] += 1.0", [5, 3, 4])):
        message = refusal(statement, state=state)
        assert "'Variable' object does not support item assignment" in message
        exec(fixes(message)[0], {"state": state})
        assert state.numpy().tolist() == expected
    array = ag.TensorArray(ag.float32, size=2).unstack([1.0, 2.0])
    names = {"array": array}
    exec(fixes(refusal("array[0] = 5.0", array=array))[0], names)
    assert names["array"].stack().numpy().tolist() == [5, 2]


def test_what_is_looked_up_by_a_tensor() -> None:
    """TensorFlow's words first: programs look for them."""
    prices = {1: 2.0}
    for statement in ("prices[t]", "t in prices", "prices.get(t)", "{t: 1}", "{t}", "set([t])"):
        message = refusal(statement, prices=prices, t=ag.constant(1))
        assert message.startswith("Tensor is unhashable. Instead, use tensor.ref() as the key.\n")
        assert f"    {statement}" in message and "`int(t)`" in message
    text = "@ag.function\ndef look(i):\n    prices = {0: 1.0, 1: 2.0}\n    return prices[i]\nlook(t)\n"
    message = refusal(text, t=ag.constant(1))
    assert message.startswith("Tensor is unhashable.") and "return prices[i]" in message
    assert "`ag.stack(values)[i]`" in message and "ag.switch_case" in message

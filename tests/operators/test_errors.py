"""What can't be staged says which variable, where, why, and what to do; what fails at run time fails as in Python."""

from __future__ import annotations

import array
import collections
import inspect
import linecache
import pathlib
import statistics
import subprocess
import sys
import traceback
import types

import numpy as np
import pytest

import autograph as ag
from autograph.convert.api import converted
from autograph.errors import StagingError, StagingTypeError, StagingValueError
from runtime import errors
from tests.operators.harness import Staged

ROOT = pathlib.Path(__file__).resolve().parents[2]
X = np.float32(1)
N = np.int32(3)


def failure(function, *arguments):
    with pytest.raises(Exception) as caught:
        Staged(function, arguments)
    return caught.value


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


def test_object_unset_in_else_branch():
    def f(x):
        if x > 0:
            y = object()
        return x, y

    error = failure(f, X)
    assert isinstance(error, StagingValueError)
    assert isinstance(error, ValueError)
    assert "'y' must also be initialized in the else branch" in error.message
    assert (error.location.filename, error.location.line) == (__file__, line_of(f, "if x > 0"))
    assert error.location.function == "f"
    assert "if x > 0:\n" in str(error)
    assert "cause: " in str(error)
    assert "fix: give 'y' a value before the `if`" in str(error)


def test_object_unset_in_first_branch():
    def f(x):
        if x > 0:
            pass
        else:
            y = object()
        return x, y

    assert "'y' must also be initialized in the main branch" in failure(f, X).message


def test_dtype_conflict_in_branches_names_lines():
    def f(x, n):
        if x > 0:
            y = x * 2
        else:
            y = n + 1
        return y

    error = failure(f, X, N)
    assert isinstance(error, StagingTypeError)
    assert isinstance(error, TypeError)
    assert "'y'" in error.message
    assert f"float32 tensor of shape () (line {line_of(f, 'y = x * 2')})" in error.message
    assert f"int32 tensor of shape () (line {line_of(f, 'y = n + 1')})" in error.message


def test_dtype_conflict_in_loop():
    def f(n, x):
        s = n
        while n > 0:
            s = x * 2
            n -= 1
        return s

    error = failure(f, N, X)
    assert isinstance(error, StagingTypeError)
    assert "'s' has dtype int32 before the loop, but dtype float32 after an iteration" in error.message
    assert f"float32 tensor of shape () (line {line_of(f, 's = x * 2')})" in error.message


def test_float_does_not_become_int():
    def f(x, n):
        return n if x > 0 else 0.5

    assert "the returned value" in failure(f, X, N).message


def test_none_in_one_branch():
    def f(x):
        if x > 0:
            return x

    with pytest.raises(StagingValueError, match="the else branch must also have a return") as caught:
        ag.function(f)(X)
    error = caught.value
    assert "the function returns a float32 tensor" in error.message
    assert "None in the `else` branch" in error.message


def test_python_object_in_branch():
    def f(x):
        y = object()
        if x > 0:
            y = object()
        return y

    assert "'y' is a Python object" in failure(f, X).message


def test_python_object_changes_in_loop():
    def f(n):
        y = "before"
        while n > 0:
            y = None
            n -= 1
        return n, y

    error = failure(f, N)
    assert "'y' is a Python str before a loop on tensors and None after an iteration" in error.message


def test_list_exchanged_in_a_dictionary_in_a_loop():
    def f(n):
        table, other = {"a": 0, "items": [1.0]}, [2.0]
        while n > 0:
            table.update(a=n)
            table["items"] = other
            n -= 1
        return table

    error = failure(f, N)
    assert "is one list before a loop on tensors and another one after an iteration" in error.message
    assert "set the items of" in str(error)


def test_structure_changes_in_loop():
    def f(n):
        xs = ()
        while n > 0:
            xs = (*xs, n)
            n -= 1
        return xs

    assert "'xs' does not have the same nested structure before and after" in failure(f, N).message


def test_deleted_in_loop():
    def f(n):
        x = n
        while n > 0:
            n -= x
            del x
        return n

    assert isinstance(failure(f, N), (StagingValueError, UnboundLocalError))


def test_loop_that_ran_zero_times():
    def f(n):
        for i in range(n):
            last = i
        return last

    staged = Staged(f, (N,))
    assert staged.run() == 2
    with pytest.raises(UnboundLocalError, match="'last'"):
        staged.run(np.int32(0))


def test_try_around_a_function_that_raises_on_a_tensor():
    def check(x):
        if x > 0:
            raise KeyError("no")

    def f(x):
        y = 1
        try:
            check(x)
            y = 2
        except KeyError:
            return y
        return y

    error = failure(f, X)
    assert isinstance(error, StagingError)
    assert "a `try` around the condition would catch it" in error.message


def test_condition_of_several_elements():
    def f(xs):
        if xs > 0:
            return 1
        return 2

    error = failure(f, np.zeros(3, np.float32))
    assert isinstance(error, StagingValueError)
    assert "reduce_any" in str(error)


def test_loop_over_scalar():
    def f(x):
        for _ in x:
            pass

    assert isinstance(failure(f, X), StagingTypeError)


def test_endless_python_iterator():
    def f(x):
        import itertools

        total = 0.0
        for k in itertools.count():
            if x < k:
                break
            total += k
        return total

    import autograph.operators.loops as loops

    most, loops._MOST_UNROLLED = loops._MOST_UNROLLED, 20
    try:
        error = failure(f, X)
    finally:
        loops._MOST_UNROLLED = most
    assert isinstance(error, StagingError)
    assert "ag.range" in str(error)


def test_symbolic_bool_outside_conversion():
    def f(x):
        return list(filter(None, [x]))

    assert isinstance(failure(f, X), errors.OperatorNotAllowedInGraphError)


def test_assert_at_run_time():
    def f(x):
        assert x > 0, "must be positive"
        return x

    staged = Staged(f, (X,))
    assert staged.run() == 1
    with pytest.raises(AssertionError, match="must be positive"):
        staged.run(np.float32(-1))


def test_assert_only_in_the_branch_taken():
    def f(x):
        if x > 0:
            assert x > 5
            y = x
        else:
            y = -x
        return y

    staged = Staged(f, (np.float32(6),))
    assert staged.run() == 6
    assert staged.run(np.float32(-2)) == 2
    with pytest.raises(AssertionError):
        staged.run(X)


def test_traceback_is_on_the_users_lines():
    def f(xs):
        for x in xs:
            if x > 1:
                raise ValueError(x)

    import traceback

    with pytest.raises(ValueError) as caught:
        converted(f)([1, 2])
    frames = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    assert frames[-1].lineno == line_of(f, "raise ValueError")
    if sys.version_info >= (3, 11):
        assert len(frames) == 2


def test_range_of_floats():
    def f(x):
        for _ in range(x):
            pass

    assert isinstance(failure(f, X), TypeError)


def test_and_beside_an_object():
    def f(n):
        return n > 0 and object()

    assert "an operand of `and` is a Python object" in failure(f, N).message


@pytest.mark.parametrize("always", [True, False])
def test_a_loop_that_never_ends_is_an_error(always):
    def f(n):
        t = n
        while ag.constant(always):
            t = n * 2
        return t

    if not always:
        assert int(ag.function(f)(N)) == int(N)
        return
    error = failure(f, N)
    assert error.message == "this loop never ends"
    assert error.location.line == line_of(f, "while ag.constant(always)")


def test_a_loop_that_an_error_ends_is_none():
    def f(n):
        while ag.constant(True):
            n = 10 // (n - 1)
        return n

    with pytest.raises(ag.errors.InvalidArgumentError, match="division by zero"):
        ag.function(f)(ag.constant(3))


def test_a_loop_that_never_ends_tells_what_changes():
    def f(x):
        t = x[:1]
        while ag.constant(True):
            t = x
        return t

    error = failure(f, np.array([1.0, 2.0]))
    assert (
        "this loop never ends; 't' has shape (1,) before the loop, but shape (2,) after an iteration" in error.message
    )


def test_structures_that_differ_from_branch_to_branch():
    def chosen(x):
        parts = [x, x + 1] if x > 0 else [object()]
        return len(parts) * x

    def assigned(x):
        if x > 0:
            parts = [x, x + 1]
        else:
            parts = [object(), 2, 3]
        return x, parts

    error = failure(chosen, X)
    assert isinstance(error, StagingValueError)
    assert "must return the same nested structure in both branches" in error.message
    assert "a Python list of 2 in the first, a Python list of 1 in the other" in error.message
    assert isinstance(failure(assigned, X), StagingTypeError)


def an_index_that_is_not_there(x):
    found = []
    result = 0
    for i in ag.range(ag.maximum(x, 0)):
        found.append(1)
        found.pop()
        if i > 1:
            result = found[0]
    return result


def a_list_that_has_grown_by_then(x):
    found = []
    total = x * 0
    for i in ag.range(ag.maximum(x, 0)):
        if i != 20:
            if i > 0:
                total += found[0]
            found.append(i + 1)
    return total


def a_key_that_is_not_there(x):
    known = {"a": 1}
    return known["a"] if x > 1 else known["b"]


def a_division_by_zero(x):
    zero = 0
    y = 2
    if x > 1:
        y = 1 // zero
    return y


@pytest.mark.parametrize(
    "program",
    [an_index_that_is_not_there, a_list_that_has_grown_by_then, a_key_that_is_not_there, a_division_by_zero],
)
@pytest.mark.parametrize("x", [-1, 1, 3])
def test_errors_of_python_come_when_the_program_gets_there(program, x):
    x = ag.constant(x)
    try:
        expected = int(program(x))
    except (LookupError, ZeroDivisionError) as error:
        with pytest.raises(type(error), match="test_errors.py") as caught:
            ag.function(program)(x)
        assert str(error.args[0]) in str(caught.value)
    else:
        assert int(ag.function(program)(x)) == expected


# --- where -----------------------------------------------------------------------------------------------------------


def run_cell(text, filename, names):
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), names)


def test_errors_in_notebooks_name_the_cell(monkeypatch):
    class Compiler:
        def format_code_name(self, name):
            return {"<ipython-input-1>": ("Cell", "In[7]")}.get(name)

    class Shell:
        compile = Compiler()

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = Shell
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    names = {"ag": ag}
    run_cell(
        "@ag.function\ndef f(x):\n    if x > 0:\n        y = x\n    else:\n        y = 1 > 0\n    return y\n"
        "@ag.function\ndef g(x, i):\n    return ag.gather(x, i)\n",
        "<ipython-input-1>",
        names,
    )
    with pytest.raises(TypeError, match=r"\n  Cell In\[7\], line 3, in f\n      if x > 0:"):
        names["f"](ag.constant(1.0))
    with pytest.raises(
        ag.errors.InvalidArgumentError, match=r"\n  at Cell In\[7\], line 10, in g\n    return ag.gather"
    ):
        names["g"](ag.constant([1.0]), ag.constant(3))
    run_cell("def h(x):\n    x[0] = 1.0\n", "module.py", names)
    with pytest.raises(TypeError, match=r"\n  module.py:2, in h\n      x\[0\] = 1.0"):
        names["h"](ag.constant([1.0]))


def test_errors_in_a_real_notebook_shell_name_the_cell():
    pytest.importorskip("IPython", minversion="8")
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='NoColor')\n"
        "shell.run_cell('import autograph as ag', store_history=True)\n"
        "shell.run_cell('x = ag.zeros([2])\\nx[0] = 1.0', store_history=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert "\n  Cell In[2], line 2, in <module>\n      x[0] = 1.0" in done.stdout


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("array.array('d', items)", "known only at run time"),
        ("collections.Counter(items)", "known only at run time"),
        ("statistics.median(items)", "known only at run time"),
    ],
)
def test_lists_that_python_code_can_not_have(statement, says):
    names = {"ag": ag, "array": array, "collections": collections, "statistics": statistics}
    text = (
        "@ag.function\ndef f(x, n):\n    items = []\n    for i in ag.range(n):\n        items.append(x)\n"
        f"    {statement}\n    return items[0]\n"
    )
    run_cell(text, f"<{statement}>", names)
    with pytest.raises(TypeError) as caught:
        names["f"](ag.constant(1.0), ag.constant(3))
    message = str(caught.value)
    assert says in message and "becomes part of the program and is no longer a Python list" in message
    assert "ag.sort(ag.stack(items))" in message
    assert statement in message or "/lib/python" in message, "the library's own line stands there"
    assert caught.value.__cause__ is None
    names_of_frames = [each.name for each in traceback.extract_tb(caught.value.__traceback__)]
    assert names_of_frames[1] == "f" or sys.version_info < (3, 11)
    run_cell(text.replace(statement, "items = ag.sort(ag.stack(items))"), f"<{statement} mended>", names)
    assert float(names["f"](ag.constant(1.0), ag.constant(3))) == 1.0


def helper_with_a_mistake(x):
    return x.nothing


def helper_with_two_dtypes(x):
    return x + ag.constant([1, 2])


def helper_with_a_matrix(x):
    return ag.linalg.matmul(x, x)


@pytest.mark.parametrize("helper", [helper_with_a_mistake, helper_with_two_dtypes, helper_with_a_matrix])
def test_errors_about_tensors_name_the_line_of_the_helper(helper):
    def program(x):
        while ag.reduce_sum(x) > 0.0:
            x = helper(x)
        return x

    with pytest.raises((AttributeError, TypeError, ValueError, errors.OpError)) as caught:
        ag.function(program)(ag.constant([1.0, 2.0]))
    said = str(caught.value)
    assert f"\n  at {__file__}:{line_of(helper, 'return')}, in {helper.__name__}\n" in said, said
    assert said.count("\n  at ") == 1


def test_errors_that_the_program_raises_are_left_alone():
    def program(x):
        raise ValueError(f"no Tensor like {x.dtype.name}")

    with pytest.raises(ValueError, match="^no Tensor like float32$"):
        ag.function(program)(ag.constant(1.0))

    def mistaken(x):
        return int("a") * x

    with pytest.raises(ValueError, match="^invalid literal for int\\(\\) with base 10: 'a'$"):
        ag.function(mistaken)(ag.constant(1.0))


def test_a_tensor_that_has_left_its_function_raises_one_error():
    kept = []

    @ag.function
    def keep(x):
        kept.append(x)
        return x

    keep(ag.constant(1.0))
    with pytest.raises(errors.InaccessibleTensorError) as caught:
        _ = kept[-1] + 1
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__

"""Strings as state of branches and loops: in variables, objects, containers, recursion, beside None and tensors."""

from __future__ import annotations

import operator
import re
from typing import Any

import pytest

import autograph as ag
from tests.texts.harness import MODES, check, plain
from tests.texts.state_programs import PROGRAMS

VALUES = [[-1.0, -2.0], [3.0, -1.0], [1.0, 2.0]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=[each.__name__ for each in PROGRAMS])
def test_state_is_pythons(program: Any, mode: str) -> None:
    check(program, VALUES, mode)


def _grown(t):
    word = "é"
    for v in t:
        if v > 0:
            word += "b"
    return word


def _chosen(t):
    word = "a"
    if t[0] > 0:
        word = "é"
    return word


@pytest.mark.parametrize("source", [_grown, _chosen])
def test_a_string_becomes_a_tensor_where_one_is_asked_for(source: Any) -> None:
    @ag.function
    def f(t):
        word = source(t)
        return ag.strings.length(word), ag.strings.join([word, "!"]), word + ag.constant("?"), [word, "x"]

    word = source([1.0])
    found = plain(f(ag.constant([1.0])))
    assert found == [len(word.encode()), word + "!", word + "?", [word, "x"]]


@pytest.mark.parametrize("source", [_grown, _chosen])
def test_strings_are_shown_as_python_shows_them(source: Any, capsys: Any) -> None:
    def f(t):
        if t[0] > -5:
            word = source(t)
            print(word, [word], {"k": (word,)}, f"{word:>4}|{word!r}", "%5s" % word, "{:<3}|".format(word), sep=";")
        return t

    ag.function(f)(ag.constant([2.0]))
    staged = capsys.readouterr().out
    f([2.0])
    assert staged == capsys.readouterr().out


@pytest.mark.parametrize("source", [_grown, _chosen])
def test_an_error_holds_the_string(source: Any) -> None:
    @ag.function
    def f(t):
        word = source(t)
        if t[0] > 0:
            raise ValueError(word, f"<{word}>")
        return t

    with pytest.raises(ValueError) as caught:
        f(ag.constant([2.0]))
    word = source([2.0])
    assert caught.value.args[:2] == (word, f"<{word}>")


@pytest.mark.parametrize("source", [_grown, _chosen])
def test_functions_that_are_called_take_strings(source: Any) -> None:
    @ag.function
    def marked(word):
        return len(word), word.upper()

    @ag.function
    def f(t):
        word = source(t)
        return marked(word), marked(f"{word}!")

    word = source([1.0])
    assert plain(f(ag.constant([1.0]))) == [[len(word), word.upper()], [len(word) + 1, word.upper() + "!"]]


_TEMPLATE = "x%s"


@pytest.mark.parametrize(
    "ask",
    [
        lambda word: {word: 1},
        lambda word: {word},
        lambda word: {f"{word}!": 1},
        lambda word: dict(a=1).setdefault(word, 2),
        lambda word: word is str(_TEMPLATE),
        lambda word: open(word),
        lambda word: _TEMPLATE % word,
        lambda word: _TEMPLATE % f"<{word}>",
        lambda word: operator.mod(_TEMPLATE, word),
        lambda word: set(word),
        lambda word: {c: 1 for c in word},
        lambda word: word.format(ag.constant(1.0)),
    ],
)
def test_what_python_must_know_while_tracing_is_refused(ask: Any) -> None:
    @ag.function
    def f(t):
        return ask(_grown(t))

    with pytest.raises((ag.errors.StagingError, TypeError), match=r"(?s)test_state\.py"):
        f(ag.constant([1.0]))


@pytest.mark.parametrize("ask", [lambda word: int(word), lambda word: word.index("q")])
def test_an_error_of_the_run_that_a_try_would_catch_is_refused(ask: Any) -> None:
    @ag.function
    def f(t):
        word = _grown(t)
        try:
            n = ask(word)
        except ValueError:
            n = -1
        return n

    with pytest.raises(ag.errors.StagingError, match=r"(?s)a `try` around.*cause: .*fix: "):
        f(ag.constant([1.0]))


def test_a_dictionary_gets_no_new_key_from_a_string_of_the_program() -> None:
    @ag.function
    def f(t):
        counts = {"éb": 0, "é": 0}
        word = _grown(t)
        counts[word] += 1
        return counts

    assert plain(f(ag.constant([1.0]))) == {"éb": 1, "é": 0}
    with pytest.raises(KeyError):
        f(ag.constant([1.0, 1.0]))


def test_a_string_beside_a_tensor_is_a_tensor() -> None:
    def f(t, s):
        word = "a"
        if t > 0:
            word = s
        return word + "!"

    made = ag.function(f)
    for t in (-1.0, 1.0):
        assert made(ag.constant(t), ag.constant("b")).numpy() == (b"b!" if t > 0 else b"a!")


def test_known_states_are_indices_in_the_program() -> None:
    """A state machine whose states are strings needs no strings when it runs."""

    @ag.function
    def f(t):
        mode = "idle"
        for v in t:
            if mode == "idle":
                if v > 0:
                    mode = "run"
            elif v < 0:
                mode = "idle"
        return mode == "run"

    text = f.get_concrete_function(ag.constant([1.0])).graph.as_text()
    assert not re.search("string|host_call", text)


@pytest.mark.parametrize("mode", MODES)
def test_texts_of_tensors_are_those_of_eager_code(mode: str) -> None:
    def f(x, n):
        shown = f"{x!r}|{x!s:>50}|" + str(n) + f"{n=}"
        return f"{x:.3f}|{n:04d}", len(f"{n}"), f"{x}" == "0.1", "%.1f" % x, f"{n}".zfill(5), shown

    arguments = ag.constant(0.1), ag.constant(12)
    assert plain(MODES[mode](f)(*arguments)) == plain(f(*arguments))

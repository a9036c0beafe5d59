"""Jumps out of ``with`` and ``try`` (also those that an error on the way out undoes): native, converted, on tensors."""

from __future__ import annotations

import contextlib

import pytest

import autograph as ag
from autograph.convert.api import converted


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *e):
        return True


class Late:
    def __enter__(self):
        return self

    def __exit__(self, *e):
        raise KeyError("late")


def ret_undone(x):
    with Quiet():
        try:
            return x
        finally:
            raise ValueError("no")
    return x * 10


def ret_undone_cond(x):
    with Quiet():
        try:
            if x > 0:
                return x
        finally:
            raise ValueError("no")
    return x * 10


def ret_undone_exit(x):
    with Quiet():
        with Late():
            if x > 0:
                return x
    return x * 10


def two_items(x):
    with Quiet(), Late():
        if x > 0:
            return x
    return x * 10


def ret_undone_loop(x):
    s = 0
    for k in range(3):
        with Quiet():
            with Late():
                if x > k:
                    return x
            s += 100
        s += 1
    return x * 10 + s


def brk_undone(x):
    s = 0
    for k in range(3):
        with Quiet():
            with Late():
                if x > k:
                    break
            s += 100
        s += 1
    return s


def brk_try(x):
    s = 0
    for k in range(4):
        try:
            if x == k:
                break
            if x == -k:
                continue
            s += 1
        except ValueError:
            s += 1000
        else:
            s += 10
        finally:
            s += 100
    else:
        s = -s
    return s


def brk_with(x):
    s = 0
    for k in range(4):
        with contextlib.suppress(ValueError):
            if x == k:
                break
            if x == -k:
                continue
            s += 1
        s += 10
    return s


def ret_with(x):
    for k in range(4):
        with contextlib.suppress(ValueError):
            if x == k:
                return k * 100
        if x == -k:
            try:
                return -k
            finally:
                pass
    return 7


def fin(x):
    log = 0
    for k in range(3):
        try:
            try:
                if x > k:
                    continue
                log += 1
            finally:
                log += 10
        finally:
            log += 100
    return log


def ret_handler(x):
    for k in range(3):
        try:
            if k == 1:
                raise KeyError("k")
        except KeyError:
            if x > 0:
                return x
        x = x + 1
    return -x


def while_with(x):
    i = 0
    while i < 4:
        with contextlib.nullcontext():
            i += 1
            if i == x:
                continue
            if i > x + 2:
                break
            x = x + 1
    else:
        return x
    return x * 100 + i


PROGRAMS = [
    ret_undone, ret_undone_cond, ret_undone_exit, ret_undone_loop, brk_undone, brk_try, brk_with, ret_with, fin,
    ret_handler, while_with, two_items,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_same_as_python(program):
    staged = ag.function(program)
    for x in (-2, -1, 0, 1, 2, 3, 9):
        expected = program(x)
        assert converted(program)(x) == expected
        assert int(staged(ag.constant(x))) == expected


def test_the_error_that_goes_on_is_the_same():
    def f(x):
        with contextlib.suppress(ValueError):
            with Late():
                if x:
                    return x
        return -1

    with pytest.raises(KeyError, match="late") as caught:
        converted(f)(1)
    names = [entry.name for entry in caught.traceback]
    assert names[-2:] == ["f", "__exit__"]


def kept_if(x):
    try:
        try:
            return 0.5
        finally:
            if x[0] > 0.3:
                return -0.75
    except TypeError:
        return 2.0


def kept_loop(x):
    try:
        try:
            return 0.5
        finally:
            for item in x:
                return item
    except Exception:
        return 2.0


@pytest.mark.parametrize("program", [kept_if, kept_loop], ids=lambda program: program.__name__)
def test_a_handler_does_not_hide_that_a_statement_cannot_be_decided(program):
    staged = ag.function(program, input_signature=[ag.TensorSpec([None])])
    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match="symbolic tensor"):
        staged(ag.constant([1.0, 2.0]))

"""Exceptions and context managers on Python values."""

from __future__ import annotations

import contextlib

from tests.convert.programs import Boom, case, logged


@case((0,), (1,), (2,))
def try_everything(x):
    try:
        print("try")
        if x == 1:
            raise Boom("one")
        if x == 2:
            return "two"
    except Boom as error:
        print("except", error)
        result = "handled"
    else:
        print("else")
        result = "fine"
    finally:
        print("finally")
    return result


@case((4,))
def loop_with_finally(n):
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            print("body", i)
        finally:
            print("finally", i)
    return i


@case((4,))
def break_skips_else(n):
    for i in range(n):
        try:
            if i == 2:
                break
            if i == 1:
                continue
        except Boom:
            pass
        else:
            print("else", i)
    return i


@case((0,), (1,))
def finally_swallows(x):
    try:
        if x:
            raise Boom
        return "try"
    finally:
        if x:
            return "finally"


@case((3,))
def finally_breaks(n):
    for i in range(n):
        try:
            if i == 1:
                raise Boom
        finally:
            if i == 1:
                break
        print(i)
    return i


@case((3,))
def finally_continues(n):
    for i in range(n):
        try:
            if i == 1:
                raise Boom
            print("try", i)
        finally:
            print("finally", i)
            if i == 1:
                continue
        print(i)
    return i


@case((0,), (1,), (2,))
def return_in_with(x):
    with logged("outer") as name:
        if x == 1:
            return name
        with logged("inner"):
            if x == 2:
                return "inner"
            print("body")
    return "end"


@case((3,))
def break_in_with(n):
    for i in range(n):
        with logged(i):
            if i == 1:
                break
            print("body", i)
    return i


@case((0,), (1,))
def suppressed(x):
    with contextlib.suppress(Boom):
        if x:
            raise Boom
        return "returned"
    return "suppressed"


@case((5,))
def suppressed_in_loop(n):
    for i in range(n):
        with contextlib.suppress(ZeroDivisionError):
            value = 10 // (i - 2)
        print(value)


@case((1,), (0,))
def except_name_unbound(x):
    error = "outer"
    try:
        if x:
            raise Boom("inner")
    except Boom as error:
        print(repr(error))
    return error


@case((0,), (1,))
def raise_from(x):
    try:
        if x:
            raise KeyError("k")
        [][0]
    except LookupError as error:
        raise Boom("wrapped") from error


@case((0,), (1,), (2,))
def return_in_handler_in_loop(x):
    while True:
        try:
            if x == 0:
                raise Boom
            if x == 1:
                return "one"
            x -= 1
        except Boom:
            return "boom"
        finally:
            print("x", x)

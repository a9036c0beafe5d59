"""Conditionals and loops on Python values."""

from __future__ import annotations

from tests.convert.programs import Boom, case


@case((1,), (-1,), (0,))
def branches(x):
    if x > 0:
        y = "positive"
    elif x < 0:
        y = "negative"
    else:
        y = "zero"
    return y


@case((0,), (1,))
def unbound_after_if(flag):
    if flag:
        value = 1
    return value


@case((0,), (1,))
def unbound_read_in_branch(flag):
    if flag:
        print(later)
    later = 1
    return later


@case((3,), (30,), (300,))
def early_returns(x):
    if x < 10:
        return "small"
    x = x + 1
    if x < 100:
        return "medium", x
    return "large", x


@case((1, 1), (1, 0), (0, 1), (0, 0))
def nested_returns(a, b):
    if a:
        if b:
            return "both"
        print("only a")
    else:
        print("not a")
    return "end"


@case((0,), (1,), (2,))
def falls_off(x):
    if x == 1:
        return "one"
    if x == 2:
        print("two")


@case((0,), (1,))
def deletes(flag):
    x = 5
    if flag:
        del x
    return x


@case((0,), (1,))
def annotated(flag):
    total: int = 0
    if flag:
        step: int = 2
        total: int = total + step
    else:
        other: int
    return total


@case((1,), (0,))
def returns_or_raises(x):
    if x:
        return "fine"
    else:
        raise Boom("no")


@case((5,), (0,))
def imports_in_branch(x):
    if x:
        import math as m
        from os import path
    else:
        m = path = None
    return m and m.sqrt(x) and path.join("a", "b")


@case((0,), (5,))
def counting(n):
    i = total = 0
    while i < n:
        total += i
        i += 1
    return total, i


@case(([],), ([1, 2, 3],))
def late_binding(xs):
    functions = []
    for x in xs:
        y = x * 10
        functions.append(lambda: (x, y))
    return [f() for f in functions]


@case(([1, 2, 3],))
def generator_late_binding(xs):
    pending = []
    for x in xs:
        pending.append(x + k for k in (1, 2))
    return [list(g) for g in pending]


@case(([],), ([4, 5],))
def loop_variable_after(xs):
    for x in xs:
        pass
    return x


@case(([1, None, 3, 9, 2],), ([],), ([7],))
def break_and_continue(xs):
    seen = []
    for x in xs:
        if x is None:
            continue
        if x > 5:
            break
        seen.append(x)
    return seen


@case(([1, 2, 3, 4, 5, 6, 7],))
def guarded_continue(xs):
    out = []
    for x in xs:
        if x % 2:
            if x % 3 == 0:
                continue
            out.append(("odd", x))
        else:
            if x == 6:
                break
            out.append(("even", x))
        out.append("tail")
    return out


@case(([1, 2, 3],), ([1, 20, 3],), ([],))
def for_else(xs):
    for x in xs:
        if x > 10:
            print("found", x)
            break
    else:
        print("not found")
    return "done"


@case((0,), (3,), (7,))
def while_else(n):
    i = 0
    while i < n:
        i += 1
        if i == 5:
            break
        if i % 2:
            continue
        print(i)
    else:
        i = -1
    return i


@case(([3, 1, 2], 1), ([3, 1, 2], 9), ([], 0))
def find(xs, wanted):
    for index, x in enumerate(xs):
        if x == wanted:
            return index
    return None


@case(([[1, 2], [3, 4]], 3), ([[1, 2], [3, 4]], 5), ([], 1))
def find_nested(rows, wanted):
    for i, row in enumerate(rows):
        for j, x in enumerate(row):
            if x == wanted:
                return i, j
        print("row", i)
    else:
        print("no rows left")
    return "nothing"


@case(([[1, 2, 0, 4], [0], [5, 6]],), ([],))
def nested_breaks(rows):
    out = []
    for row in rows:
        for x in row:
            if x == 0:
                break
            if x == 5:
                continue
            out.append(x)
        else:
            out.append("full")
            continue
        out.append("cut")
        if len(out) > 6:
            break
    return out


@case((1,), (27,))
def endless(n):
    steps = 0
    while True:
        if n == 1:
            return steps
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1


@case((3,))
def break_keeps_iterator(n):
    source = iter(range(10))
    for x in source:
        if x == n:
            break
    return list(source)


@case((3,))
def return_keeps_iterator(n):
    source = iter(range(10))

    def take():
        for x in source:
            if x == n:
                return x

    return take(), list(source)


@case((2,), (9,))
def exception_leaves_state(n):
    x = i = 0
    try:
        for i in range(5):
            x += i
            if i == n:
                raise Boom(x)
            x += 100
    except Boom as error:
        print("caught", error)
    return x, i


@case((2,))
def generator_closed_on_break(n):
    def source():
        try:
            yield from range(5)
        finally:
            print("closed")

    for x in source():
        if x == n:
            break
    print("after")
    return x


@case((2,))
def generator_closed_on_error(n):
    def source():
        try:
            yield from range(5)
        finally:
            print("closed")

    try:
        for x in source():
            if x == n:
                raise Boom
    except Boom:
        print("after")


@case(([(1, (2, 3)), (4, (5, 6))],))
def unpacking_target(pairs):
    total = 0
    for a, (b, *c) in pairs:
        total += a * b + len(c)
    return total, a, b, c


@case(([5, 6, 7],))
def attribute_target(xs):
    class Box:
        pass

    box, d = Box(), {}
    for box.x in xs:
        for d["k"] in range(box.x):
            pass
    return box.x, d


@case((4,))
def unbound_in_loop(n):
    for i in range(n):
        if i == 2:
            print(seen)
        if i == 1:
            seen = i
    for i in range(n):
        if i == 0:
            print(never)
        if i > n:
            never = 1


@case((3,))
def previous_value(n):
    for i in range(n):
        if i > 0:
            print("previous", last)
        last = i * i


@case((5,))
def temporaries(n):
    for i in range(n):
        square = i * i
        if square > 3:
            half = square / 2
            print(half)
    return square


@case(("",), ("a,b;c",))
def walrus_in_test(text):
    parts = []
    while (cut := text.partition(",")) and cut[0]:
        parts.append(cut[0])
        text = cut[2]
    return parts, cut


@case(([3, 8, 1],), ([],))
def walrus_in_comprehension(xs):
    found = [y for x in xs if (y := x * 2) > 4 or x]
    if found:
        last = y
    else:
        last = None
    return found, last


@case((1, 0), (0, 0), (2, 1), (0, 2), (3, 3))
def finally_that_returns_on_all_ways(a, b):
    while a < 5:
        a += 1
        try:
            with logged("body"):
                if b == 1:
                    return "body"
                if b == 2:
                    raise KeyError(a)
        finally:
            print("finally", a)
            if a > 2:
                if b > 2:
                    return "late"
                print("middle")
            elif b:
                return b
            return a
    return "end"


@case((1, 0, 2), (0, 1, 2), (0, 1, -1), (0, 0, 0))
def return_out_of_finally_in_a_pinned_loop(a, b, c):
    with logged("outer"):
        if a:
            if b:
                return a
        else:
            for x in range(3):
                try:
                    y = c // x
                except ZeroDivisionError:
                    if b < 0:
                        return "handler"
                finally:
                    if c > 1:
                        return "finally"
                if x < 2:
                    continue
                print(y)
        a += 1
    return a, b


@case((0,), (1,), (2,))
def error_in_finally_undoes_the_return(x):
    try:
        with logged("inner"):
            try:
                if x:
                    return "tried"
            finally:
                if x == 1:
                    raise Boom(x)
    except Boom as error:
        print("caught", error)
    for i in range(3):
        try:
            try:
                if i == x:
                    return "in loop"
            finally:
                assert i != 2
        except AssertionError:
            print("again", i)
    return "fell through"


@case((1,), (0,))
def frame_reader_after_a_return(x):
    if not x:
        return sorted({*locals()} - {"ag__"})
    y = x
    return sorted({*locals()} - {"ag__"})

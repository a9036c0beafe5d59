"""Promises: Numbers, strings and comprehensions."""

from __future__ import annotations

import autograph as ag
from autograph.errors import StagingTypeError
from tests.promises.registry import GIVEN, checked, kept, refused


@checked("Default dtypes")
def default_dtypes(mode):
    def run(t):
        small, wide, real = 0, 0, 0.0
        for _ in t:
            small, wide, real = small + 1, wide + 2**40, real + 1.0
        return small, wide, real, int(ag.cast(t[0], ag.int64)) + small

    assert [each.dtype for each in mode(run)(ag.constant(GIVEN))] == [ag.int32, ag.int64, ag.float32, ag.int64]


@kept("Range")
def range_of_numbers(t):
    k, hashed = 7, 1
    for v in t:
        k = (k * 5 + int(v)) % 1013
        hashed = (hashed * 6364136223846793005 + 1442695040888963407) & (2**32 - 1)
    return k // -3, k % -5, k**2, round(k / 7, 2), hashed % 1000, pow(k, 10**6, 10**15 + 37)


@refused("Range", OverflowError, "")
def number_too_large(t):
    k = 1
    for _ in t:
        k *= 2**20
    return k


@refused("Range", ZeroDivisionError, "")
def division_by_zero(t):
    k = 0
    for _ in t:
        k += 1
    return k // (k - 5)


@kept("Mixed types")
def mixed_types(t):
    k = 1
    for v in t:
        k = 2 if v > 4.0 else 0.5
    return k * 3, 1 if t[0] > 1.0 else 0.25


@kept("Inspection")
def inspection(t):
    k, name = 0, ""
    for _ in t:
        k += 1
    match k:
        case int(n):
            name = str(n)
    return isinstance(k, int), type(k) is int, name, ag.is_tensor(k)


@refused("Inspection", StagingTypeError, "")
def identity_of_numbers(t):
    k, m = 0, 0
    for _ in t:
        k, m = k + 1, m + 1
    return k is m


@kept("Flags and None")
def flags_and_none(t):
    flag, found = False, None
    for v in t:
        if v > 4.0:
            flag, found = True, v
    matched = 0
    match (flag, found):
        case (True, None):
            matched = 1
        case (True, _):
            matched = 2
    return flag is True, isinstance(flag, bool), found is None, found != None, found in (None,), matched  # noqa: E711


@checked("Lists. A staged list of numbers")
def lists_of_numbers(mode):
    def run(t):
        found = []
        for _ in t:
            found.append((2**40, t[0]))
        return found[0][0], found[0][1]

    number, tensor = mode(run)(ag.constant(GIVEN))
    assert (int(number), number.dtype, tensor.dtype) == (2**40, ag.int64, ag.float32)


@kept("Calls. An")
def numbers_in_calls(t):
    double = ag.function(lambda k: k * 2 if isinstance(k, int) else k)
    k = 0
    for _ in t:
        k += 1
    return double(k)


# --- strings --------------------------------------------------------------------------------------------------------


@kept("Operations. All methods of strings")
def strings(t):
    marks = ""
    for v in t:
        marks += "ab"[int(v) % 2]
    head, _, tail = marks.partition("a")
    key, *values = f"{len(marks)}={marks}=x".split("=")
    counts = len(marks), marks.count("b"), marks.find("a"), int("4" + str(len(marks))), ord(marks[0])
    return (
        marks.upper(),
        marks[1:4],
        f"{marks:>8}|{t[0]:.1f}",
        marks * 2,
        "ba" in marks,
        *counts,
        head,
        tail,
        key,
        values[0],
    )


@kept("Known strings stay known")
def known_strings(t):
    mode = "idle"
    if t[0] > 1.0:
        mode = "run"
    return {"idle": 1, "run": 2}[mode], mode.startswith("r"), "-".join([mode, mode])


@checked("As tensors")
def strings_as_tensors(mode):
    def run(t):
        text = "x"
        if t[0] > 1.0:
            text = "xyz"
        return text, ag.strings.length(text)

    text, length = mode(run)(ag.constant(GIVEN))
    assert (text.dtype, text.numpy(), int(length)) == (ag.string, b"xyz", 3)


@kept("table[text], table.get(text)")
def texts_as_keys(t):
    counts = {"low": 0, "high": 0}
    for v in t:
        name = "high" if v > 1.5 else "low"
        counts[name] += 1
    return counts["low"], counts["high"], counts.get(name, 9)


@refused("Refused are what Python needs", StagingTypeError, "")
def set_of_a_text(t):
    text = ""
    for v in t:
        text += "ab"[int(v) % 2]
    return len(set(text))


@kept("text and condition")
def text_and_condition(t):
    text = ""
    for v in t:
        text += "x"
    return 1 if text and t[0] > 1.0 else 0


# --- comprehensions -------------------------------------------------------------------------------------------------


@kept("A generator expression over something staged")
def generators(t):
    found = [v for v in t]
    found.extend(v + found[-1] for v in t)
    return ag.stack(found), sum(v * v for v in t if v > 1.0)


@kept("A list comprehension with :=")
def walrus_in_comprehensions(t):
    kept = [y for v in t if (y := v * 2.0) > 3.0]
    return ag.stack(kept), y


@kept("Sets, dictionaries, iter and next")
def pythons_containers(t):
    table = {i: v for i, v in enumerate(t)}
    return table[3], len(table), next(iter(t))


@kept("next of a generator expression")
def next_of_generators(t):
    large = (v for v in t if v > 1.5)
    return next(large), next(large), next((v for v in t if v > 9.0), -1.0)


@checked("The index of enumerate")
def index_of_enumerate(mode):
    def run(t):
        last = ag.constant(0)
        for i, _ in enumerate(t):
            last = i
        for j, _ in enumerate(ag.data.Dataset.range(3)):
            count = j
        return last, count

    assert [each.dtype for each in mode(run)(ag.constant(GIVEN))] == [ag.int32, ag.int64]


@kept("sum, any, all, min and max")
def functions_of_all_items(t):
    found = [v for v in t if v > 0.5]
    tops = max(found, key=lambda v: -v), min(found, default=0.0), max([v for v in t if v > 9.0], default=7.0)
    flags = any(v > 4.0 for v in t), all(v > 4.0 for v in t)
    return *tops, *flags, ag.stack(sorted(found, reverse=True)), ag.stack(list(t)), len(found)

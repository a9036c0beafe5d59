"""Strings that a program chooses or builds, and what can be asked of them: programs in Python's meaning."""

from __future__ import annotations

import autograph as ag


def chosen_in_a_branch(t):
    text = " aé7 "
    if t[0] > 0:
        text = "Bb,Bc"
    return text


def chosen_in_a_loop(t):
    text = " aé7 "
    for v in t:
        if v > 2:
            text = "Bb,Bc"
        elif v > 0:
            text = "12"
    return text


def grown_in_a_loop(t):
    text = ""
    for v in t:
        if v > 2:
            text += "é"
        elif v > 0:
            text += "12"
    return text


def _mark(v):
    return "Bb," if v > 2 else "c 7"


def from_a_helper(t):
    return f"{_mark(t[0])}{_mark(t[1]):>4}"


SOURCES = {each.__name__: each for each in (chosen_in_a_branch, chosen_in_a_loop, grown_in_a_loop, from_a_helper)}


def _iterated(s):
    n = 0
    for c in s:
        if c == "B" or c == "é":
            n += 1
    return n


def _collected(s):
    out = ""
    for c in s:
        out = c + out
    return out


def _counted(s):
    counts = {"a": 0, "B": 0, "é": 0}
    for c in s:
        if c in counts:
            counts[c] += 1
    return counts


def _stored(s):
    held = {"k": f"<{s}>", "l": [f"{s}!"]}
    return held["k"] + held["l"][0]


def _matched(s):
    match s:
        case "12":
            return 1
        case "Bb,Bc" | "éé":
            return 2
        case str():
            return 3
    return 4


def _cases(s):
    if s.startswith("B"):
        return "first"
    if not s:
        return "empty"
    return s.strip()


def _nested(s):
    return f"[{f'{s!r}':>9}|{s}{f'<{s}>'}]"


def _set_width(s):
    n = len(s)
    return f"{s:>{n + 2}}|{s!s:^{9}}|{n:03d}"


def _grown_again(s):
    for _ in ag.range(2):
        s = s + s[:1]
    return s


def _lists(s):
    parts = s.split(",")
    return len(parts), parts[0], parts[-1].upper()


def _joined(s):
    return "-".join([s, "x", s.upper()])


def _together(s):
    out = []
    for part in s.split(","):
        out.append(part + ".")
    return "+".join(out)


def _partitioned(s):
    head, mark, tail = s.partition(",")
    return head + "|" + mark + "|" + tail


def _while(s):
    n = 0
    while len(s) > 1:
        s = s[1:]
        n += 1
    return n, s


def _comprehension(s):
    return [ord(c) for c in s if c != "B"]


def _enumerated(s):
    n = 0
    for i, c in enumerate(s):
        if c.isdigit():
            n += i * int(c)
    return n


def _number(s):
    if s == "12":
        return int(s) + 1
    return 0


def _fraction(s):
    if s.isdigit():
        return float(s) / 2
    return -1.0


def _zipped(s):
    n = 0
    for a, b in zip(s, s[1:]):
        if a == b:
            n += 1
    return n


def _either(s):
    return s or "none"


def _both(s):
    return bool(s and s[0] == "B")


ASKS = {
    "startswith": lambda s: s.startswith("B"),
    "startswith several": lambda s: s.startswith(("B", "é")),
    "endswith": lambda s: s.endswith("7 "),
    "upper": lambda s: s.upper(),
    "lower": lambda s: s.lower(),
    "strip": lambda s: s.strip(),
    "rstrip": lambda s: s.rstrip("cé"),
    "replace": lambda s: s.replace("B", "éé"),
    "replace some": lambda s: s.replace("B", s, 1),
    "title": lambda s: s.title(),
    "capitalize": lambda s: s.capitalize(),
    "swapcase": lambda s: s.swapcase(),
    "center": lambda s: s.center(9, "*"),
    "zfill": lambda s: s.zfill(7),
    "find": lambda s: s.find("7"),
    "index": lambda s: s.index("B"),
    "count": lambda s: s.count("é"),
    "isdigit": lambda s: s.isdigit(),
    "isalpha": lambda s: s.isalpha(),
    "isspace": lambda s: s.isspace(),
    "removeprefix": lambda s: s.removeprefix("B"),
    "split": _lists,
    "split words": lambda s: len(s.split()),
    "rsplit": lambda s: s.rsplit(",", 1)[0],
    "splitlines": lambda s: len(s.splitlines()),
    "partition": _partitioned,
    "join": lambda s: s.join(["a", "b"]),
    "join of it": _joined,
    "join of a list": _together,
    "encode": lambda s: s.encode(),
    "expandtabs": lambda s: s.expandtabs(),
    "translate": lambda s: s.translate({66: "x"}),
    "len": lambda s: len(s),
    "times": lambda s: s * 2,
    "times a length": lambda s: "-" * len(s) + len(s) * "+",
    "times left": lambda s: 3 * s,
    "plus": lambda s: s + "!" + s,
    "plus left": lambda s: "!" + s,
    "in": lambda s: "B" in s,
    "not in": lambda s: "B" not in s,
    "in a string": lambda s: s in "ab12é",
    "in a tuple": lambda s: s in ("12", "éé", " aé7 "),
    "in a list": lambda s: s in ["12", "Bb,Bc"],
    "in a dictionary": lambda s: s in {"12": 0, "": 1},
    "slice": lambda s: s[1:],
    "slice by step": lambda s: s[::-1],
    "slice from the end": lambda s: s[-2:],
    "item": lambda s: s[0],
    "last item": lambda s: s[-1],
    "item far": lambda s: s[3],
    "item at a number": lambda s: s[len(s) - 1],
    "==": lambda s: s == "12",
    "== left": lambda s: "12" == s,
    "!=": lambda s: s != "12",
    "== of another kind": lambda s: s == 1,
    "<": lambda s: s < "Bb",
    "<=": lambda s: s <= "Bb,Bc",
    ">": lambda s: s > "12",
    ">= left": lambda s: "12" >= s,
    "chained": lambda s: " " < s < "c",
    "for": _iterated,
    "for collects": _collected,
    "for counts": _counted,
    "enumerate": _enumerated,
    "zip": _zipped,
    "comprehension": _comprehension,
    "list": lambda s: list(s),
    "int": lambda s: int(s),
    "int in a branch": _number,
    "int of a base": lambda s: int(s, 16),
    "float": lambda s: float(s),
    "float in a branch": _fraction,
    "bool": lambda s: bool(s),
    "not": lambda s: not s,
    "or": _either,
    "and": _both,
    "str": lambda s: str(s),
    "repr": lambda s: repr(s),
    "ascii": lambda s: ascii(s),
    "f-string": lambda s: f"{s}-{s}",
    "f-string compared": lambda s: f"{s}!" == "12!",
    "f-string formats": lambda s: f"{s:>8}|{s:*^7}|{s:.2}",
    "f-string converts": lambda s: f"{s!r}|{s!a}|{s!s:<6}|",
    "f-string in an f-string": _nested,
    "f-string widths": _set_width,
    "f-string stored": _stored,
    "f-string asked": lambda s: (f"{s}!".upper(), len(f"<{s}>"), f"{s}x"[-1], "1" in f"{s}"),
    "f-string of a number": lambda s: f"{len(s)}/{len(s):>3}/{len(s) / 2:.2f}",
    "%": lambda s: "%s is %5s, %-4s %r" % (s, s, s, s),
    "% of it": lambda s: (s + "%d") % 3,
    "% of a mapping": lambda s: "%(a)s" % {"a": s},
    "format": lambda s: "{} {:>6} {a!r}".format(s, s, a=s),
    "format of it": lambda s: (s + "{}").format(3),
    "format function": lambda s: format(s, ">7"),
    "str of a number": lambda s: str(len(s)) + s,
    "isinstance": lambda s: (isinstance(s, str), isinstance(s, int), type(s) is str),
    "match": _matched,
    "returns": _cases,
    "dictionary": lambda s: {"12": 1, "Bb,Bc": 2}[s],
    "get": lambda s: {"12": 1, "Bb,Bc": 2, "éé": 3}.get(s, -1),
    "grown again": _grown_again,
    "shortened": _while,
    "unknown method": lambda s: s.foo(),
    "plus a number": lambda s: s + 1,
    "index of a float": lambda s: s * 1.5,
    "ord": lambda s: ord(s[0]),
    "chr": lambda s: chr(len(s) + 64),
    "unbound method": lambda s: str.upper(s),
    "several": lambda s: s.strip().upper().replace("B", "b").split(",")[0],
}

"""The targets: our time over that of the peers, by the kinds of workloads; and the table that says which are met."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import peers
from benchmarks.harness import Case, Row
from benchmarks.overheads import first, tracing

Results = Sequence[tuple[Case, list[Row]]]
COMPILERS_AND_TORCH = (peers.JAX, peers.TF, peers.TF_XLA, peers.TORCH, peers.TORCH_COMPILED)


@dataclass(frozen=True)
class Rule:
    """Every workload of the kinds takes at most `limit` of the time of each of the peers.

    `best`: of the fastest of them only.
    """

    what: str
    kinds: tuple[str, ...]
    peers: tuple[str, ...]
    limit: float
    best: bool = False


RULES = (
    Rule("scalar loops: hand-written numba", ("scalar loop",), (peers.NUMBA,), 1.2),
    Rule("scalar loops: JAX", ("scalar loop",), (peers.JAX,), 1 / 3),
    Rule("scalar loops: tf.function", ("scalar loop",), (peers.TF,), 1 / 100),
    Rule("scalar loops: tf.function with XLA", ("scalar loop",), (peers.TF_XLA,), 1 / 2),
    Rule("gradients of loops: JAX's scan", ("loop gradient",), (peers.JAX,), 1 / 2),
    Rule("gradients of loops: tf.function", ("loop gradient",), (peers.TF,), 1 / 100),
    Rule("elementwise chains, 1e6: JAX", ("chain 1e6",), (peers.JAX,), 1 / 3),
    Rule("elementwise chains, 1e6: TensorFlow", ("chain 1e6",), (peers.TF, peers.TF_XLA), 1 / 3),
    Rule("elementwise chains, 1e6: C", ("chain 1e6",), (peers.C,), 1.3),
    Rule("elementwise chains, 1e3: NumPy", ("chain 1e3",), (peers.NUMPY,), 1.0),
    Rule("reductions: JAX", ("reduction",), (peers.JAX,), 1 / 1.5),
    Rule("reductions: torch", ("reduction",), (peers.TORCH, peers.TORCH_COMPILED), 1 / 1.5),
    Rule("RNN and LSTM: JAX", ("network",), (peers.JAX,), 1.0),
    Rule("RNN and LSTM: tf.function", ("network",), (peers.TF, peers.TF_XLA), 1 / 1.5),
    Rule("loops over arrays: hand-written numba", ("array loop",), (peers.NUMBA,), 1.2),
    Rule("loops over arrays: the fastest compiler", ("array loop",), COMPILERS_AND_TORCH, 1.0, best=True),
    Rule("array programs: the fastest peer", ("array program",), COMPILERS_AND_TORCH, 1.0, best=True),
    Rule("layers: the fastest peer", ("layer",), COMPILERS_AND_TORCH, 1.0, best=True),
    Rule("training step of an MLP: the fastest peer", ("training",), COMPILERS_AND_TORCH, 1.0, best=True),
    Rule("call of a trivial function with a tensor: JAX", ("call-1",), (peers.JAX,), 0.6),
    Rule("eager addition of scalars: torch", ("eager add",), (peers.TORCH,), 1.0),
)


@dataclass(frozen=True)
class Verdict:
    """A line of the table: what is wanted, the limit, what was measured, whether it is met (None: not measured)."""

    what: str
    limit: str
    measured: str
    met: bool | None


def number(value: float) -> str:
    """Two digits."""
    return f"{value:.2f}" if 0.095 <= value < 100 else f"{value:.2g}"


def ratios(results: Results, rule: Rule) -> Iterator[tuple[str, float]]:
    """The name of each workload with our time over that of the peer that the rule is about: the worst, or the best."""
    for case, rows in results:
        if case.kind not in rule.kinds or rows[0].median is None:
            continue
        times = [row.median for row in rows if row.label in rule.peers and row.median is not None]
        if times:
            yield case.name, rows[0].median / min(times)


def verdicts(results: Results) -> list[Verdict]:
    """One for each rule about which something was measured: the worst workload, and which miss the limit."""
    found = []
    for rule in RULES:
        measured = sorted(ratios(results, rule), key=lambda pair: -pair[1])
        if not measured:
            continue
        missed = [f"{name} {number(ratio)}" for name, ratio in measured if ratio > rule.limit]
        worst = f"at most {number(measured[0][1])} ({measured[0][0]})"
        text = (
            f"{len(measured) - len(missed)} of {len(measured)} meet it; not: {', '.join(missed)}" if missed else worst
        )
        found.append(Verdict(rule.what, f"≤ {number(rule.limit)}", text, not missed))
    return found


def first_results(found: Mapping[str, first.Times]) -> list[Verdict]:
    """First results against the fastest peer, compiled ones against JAX's, and what a second process compiles."""
    if not found.get(peers.AUTOGRAPH):
        return []
    again = sum(line["compiled"] for line in found.get(first.FULL_CACHE, {}).values())
    return [
        *_firsts("first result in a fresh process: the fastest peer", found, peers.AUTOGRAPH, first.LIBRARIES),
        *_firsts("first compiled result (`jit_compile=True`): JAX", found, first.COMPILED, (peers.JAX,)),
        Verdict("kernels that a second process compiles", "0", f"{again}", again == 0),
    ]


def _firsts(what: str, found: Mapping[str, first.Times], ours: str, theirs: Iterable[str]) -> Iterator[Verdict]:
    """The first results of ours that take longer than those of the fastest of the peers."""
    measured, missed = 0, []
    for name, line in found.get(ours, {}).items():
        others = [found[label][name]["seconds"] for label in theirs if _is_peer(label) and name in found.get(label, ())]
        if others:
            ratio = line["seconds"] / min(others)
            measured += 1
            missed += [f"{name} {number(ratio)}"] if ratio > 1.0 else []
    text = f"{measured - len(missed)} of {measured} meet it"
    if measured:
        yield Verdict(what, "≤ 1.00", f"{text}; not: {', '.join(missed)}" if missed else text, not missed)


def _is_peer(label: str) -> bool:
    return label not in first.OURS


def others(
    results: Results, deep: Mapping[str, float], imports: Mapping[str, float | None], quick: bool = False
) -> list[Verdict]:
    """The targets that aren't ratios of two times of a workload."""
    found = []
    ours, jax = imports.get("autograph"), imports.get("jax")
    if ours and jax:
        found.append(Verdict("import: JAX's", "≤ 0.50", number(ours / jax), ours <= 0.5 * jax))
    if deep:
        after, more = deep["native"], deep["more"]
        found.append(Verdict("training step of 60 layers: native after", "≤ 6 s", f"{after:.2g} s", after <= 6))
        found.append(Verdict("60 layers: kernels that a new batch size compiles", "0", f"{more:g}", more == 0))
    for case, rows in results:
        if case.kind == "tracing" and rows[0].median is not None:
            micro = rows[0].median / tracing.operations(quick) * 1e6
            found.append(Verdict("tracing, a node", "≤ 20 µs", f"{micro:.3g} µs", micro <= 20))
    return found


def table(lines: Sequence[Verdict]) -> str:
    """The table in Markdown."""
    words = {True: "yes", False: "**no**", None: ""}
    text = ["| our time over | target | measured | met |", "| --- | ---: | --- | --- |"]
    text += [f"| {line.what} | {line.limit} | {line.measured} | {words[line.met]} |" for line in lines]
    return "\n".join(text) + "\n"


def summary(lines: Sequence[Verdict]) -> str:
    met = sum(1 for line in lines if line.met)
    return f"{met} of {len(lines)} targets are met.\n"


def overview(results: Results) -> str:
    """Our time over that of each peer, all workloads in one table."""
    labels = list(dict.fromkeys(row.label for _, rows in results for row in rows[1:]))
    wide = [label for label in labels if sum(any(row.label == label for row in rows) for _, rows in results) > 4]
    text = ["| | ours | " + " | ".join(wide) + " |", "| --- | ---: |" + " ---: |" * len(wide)]
    for case, rows in results:
        times = {row.label: row.median for row in rows}
        cells = [_ratio(rows[0].median, times.get(label)) for label in wide]
        text.append(f"| {case.name} | {_seconds(rows[0].median)} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def _ratio(ours: float | None, theirs: float | None) -> str:
    return number(ours / theirs) if ours is not None and theirs is not None else ""


def _seconds(value: Any) -> str:
    from benchmarks.report import seconds

    return seconds(value)

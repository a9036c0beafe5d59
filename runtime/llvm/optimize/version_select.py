"""Selection between two versions of a loop as it runs: trips in lanes, or trip by trip, whichever was faster lately.

Where few lanes have work while the others wait, or where machines have no vector form of an operation, trips by
themselves are faster. That can't be told from the code, so the loop takes the time: of its first runs, and of each
`_EVERY` later ones, one is timed in lanes and one trip by trip, and the rest take the version that took less time. A
run in lanes costs about the same for however few trips. Results are the same either way.
"""

from __future__ import annotations

import platform

from runtime.llvm.writer import Writer

_FIRST, _EVERY = 4, 64  # powers of two
# The cycle counter of x86; other machines don't let programs read theirs, but have clocks.
_CLOCK = "@llvm.readcyclecounter" if platform.machine() in ("x86_64", "AMD64") else "@llvm.readsteadycounter"


class VersionSelect:
    """What a loop has measured of its two versions; forgotten when the kernel returns."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self._runs, self._lanes, self._alone, self._began, self._count, self._rest = (self._place() for _ in range(6))

    def _place(self) -> str:
        place = self.w.stack("i64")
        self.w.entry.append(f"  store i64 0, ptr {place}")
        return place

    def choose(self, active: str, together: str, alone: str) -> None:
        """Jumps to the version that runs the next `active` trips. The version trip by trip comes here before each."""
        w = self.w
        on, ready, timed, decide, single = (w.label() for _ in range(5))
        rest = self._load(self._rest)
        w.branch(w.op(f"icmp ne i64 {rest}, 0"), on, ready)
        w.block(on)
        self._store(w.op(f"sub i64 {rest}, 1"), self._rest)
        w.jump(alone)
        w.block(ready)
        count = self._load(self._count)
        w.branch(w.op(f"icmp ne i64 {count}, 0"), timed, decide)
        w.block(timed)
        self._learn(self._alone, w.op(f"udiv i64 {self._spent()}, {count}"))
        self._store("0", self._count)
        w.jump(decide)
        w.block(decide)
        runs = self._load(self._runs)
        self._store(w.op(f"add i64 {runs}, 1"), self._runs)
        now = self._is_timed(runs)
        odd = w.op(f"trunc i64 {runs} to i1")
        by_themselves = w.op(f"mul i64 {self._load(self._alone)}, {active}")
        slower = w.op(f"icmp ugt i64 {self._load(self._lanes)}, {by_themselves}")
        clock, going = w.label(), w.label()
        w.branch(now, clock, going)
        w.block(clock)
        self._store(self._clock(), self._began)
        w.jump(going)
        w.block(going)
        self._store(w.op(f"select i1 {w.op(f'and i1 {now}, {odd}')}, i64 {active}, i64 0"), self._count)
        w.branch(w.op(f"select i1 {now}, i1 {odd}, i1 {slower}"), single, together)
        w.block(single)
        self._store(w.op(f"sub i64 {active}, 1"), self._rest)
        w.jump(alone)

    def lanes_done(self) -> None:
        """Takes the time of a run in lanes that was to be timed."""
        w = self.w
        timed, on = w.label(), w.label()
        # The run's number has been counted already.
        w.branch(self._is_timed(w.op(f"sub i64 {self._load(self._runs)}, 1")), timed, on)
        w.block(timed)
        self._learn(self._lanes, self._spent())
        w.jump(on)
        w.block(on)

    def _is_timed(self, runs: str) -> str:
        w = self.w
        first = w.op(f"icmp ult i64 {runs}, {_FIRST}")
        later = w.op(f"icmp ult i64 {w.op(f'and i64 {runs}, {_EVERY - 1}')}, 2")
        return w.op(f"or i1 {first}, {later}")

    def _spent(self) -> str:
        """Time since the clock was last read, times 64."""
        w = self.w
        return w.op(f"shl i64 {w.op(f'sub i64 {self._clock()}, {self._load(self._began)}')}, 6")

    def _learn(self, place: str, cost: str) -> None:
        """Takes in a cost: at once where it is less than what was known, otherwise little by little, since it counts
        whatever else the machine does meanwhile."""
        w = self.w
        known = self._load(place)
        more = w.op(f"add i64 {known}, {w.op(f'lshr i64 {known}, 2')}")
        most = w.op(f"select i1 {w.op(f'icmp eq i64 {known}, 0')}, i64 -1, i64 {more}")
        less = w.op(f"icmp ult i64 {cost}, {most}")
        self._store(w.op(f"select i1 {less}, i64 {cost}, i64 {most}"), place)

    def _clock(self) -> str:
        self.w.program.declare(f"declare i64 {_CLOCK}()")
        return self.w.op(f"call i64 {_CLOCK}()")

    def _load(self, place: str) -> str:
        return self.w.op(f"load i64, ptr {place}")

    def _store(self, text: str, place: str) -> None:
        self.w.line(f"store i64 {text}, ptr {place}")

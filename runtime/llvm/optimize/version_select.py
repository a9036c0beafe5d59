"""Version selection: a loop runs in lanes or trip by trip, whichever was faster recently.

Single trips are faster if few lanes are active, or if the machine has no vector form of an operation. The code doesn't
show that, so the loop measures it: its first runs alternate between the versions, and so do two of every `_EVERY` later
ones; the others take the faster version. If lanes are much faster, it measures less often, since a run without them
costs as much as many with them. A run in lanes costs about the same for any number of trips. The results are equal.

The cost of a trip may grow as the loop goes on, as in trial division of growing numbers. So all runs in lanes are
timed, and one that takes twice as long as any before makes the loop measure again.
"""

from __future__ import annotations

from runtime.llvm import processor
from runtime.llvm.writer import Writer

_FIRST = 4  # runs that alternate
_EVERY = 61  # a prime, so that it doesn't coincide with the rows of an image
_FAR = 4  # times faster


class VersionSelect:
    """What a loop has measured about its two versions in this call of the kernel."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self._turns = self._place(_FIRST)  # runs that still alternate: in lanes if it is even
        self._wait = self._place(_EVERY)  # runs until the versions alternate again
        self._compared = self._place()  # whether this run is one of those
        self._lanes, self._alone = self._place(), self._place()  # the times of a run in lanes and of a single trip
        self._longest = self._place()  # the longest of the runs in lanes
        self._began, self._count = self._place(), self._place()  # the start and the trips of a timed run without lanes
        self._rest = self._place()

    def _place(self, first: int = 0) -> str:
        place = self.w.stack("i64")
        with self.w.at_start():
            self.w.store("i64", first, place)
        return place

    def choose(self, active: str, together: str, alone: str) -> None:
        """Jumps to the version for the next `active` trips. The version without lanes comes here before each trip."""
        w = self.w
        on, ready, timed, decide, single = (w.label() for _ in range(5))
        rest = self._load(self._rest)
        w.branch(w.binary("icmp ne", rest, 0), on, ready)
        w.block(on)
        self._store(w.binary("sub", rest, 1), self._rest)
        w.jump(alone)
        w.block(ready)
        count = self._load(self._count)
        w.branch(w.binary("icmp ne", count, 0), timed, decide)
        w.block(timed)
        self._learn(self._alone, w.binary("udiv", self._spent(), count))
        self._store("0", self._count)
        w.jump(decide)
        w.block(decide)
        in_lanes, by_themselves = self._load(self._lanes), w.binary("mul", self._load(self._alone), active)
        slower = w.binary("icmp ugt", in_lanes, by_themselves)
        compares, odd = self._take_turn(w.binary("icmp ult", w.binary("mul", in_lanes, _FAR), by_themselves))
        self._store(w.select(w.binary("and", compares, odd, "i1"), active, 0), self._count)
        self._store(self._clock(), self._began)
        w.branch(w.select(compares, odd, slower, "i1"), single, together)
        w.block(single)
        self._store(w.binary("sub", active, 1), self._rest)
        w.jump(alone)

    def _take_turn(self, is_far: str) -> tuple[str, str]:
        """Whether the next run is a measured one; and whether it runs without lanes. is_far: lanes are much faster."""
        w = self.w
        turns = self._load(self._turns)
        compares, odd = w.binary("icmp ne", turns, 0), w.convert("trunc", "i64", turns, "i1")
        period = w.select(is_far, _FAR * _EVERY, _EVERY)
        wait = w.select(compares, period, w.binary("sub", self._load(self._wait), 1))
        again = w.select(w.binary("icmp eq", wait, 0), 2, 0)
        self._store(wait, self._wait)
        self._store(w.select(compares, w.binary("sub", turns, 1), again), self._turns)
        self._store(w.convert("zext", "i1", compares, "i64"), self._compared)
        return compares, odd

    def lanes_done(self) -> None:
        """Records the time of a run in lanes."""
        w = self.w
        compared, other, longer, on = (w.label() for _ in range(4))
        spent, longest = self._spent(), self._load(self._longest)
        w.branch(w.binary("icmp ne", self._load(self._compared), 0), compared, other)
        w.block(compared)
        self._learn(self._lanes, spent)
        self._store(w.select(w.binary("icmp ugt", spent, longest), spent, longest), self._longest)
        w.jump(on)
        w.block(other)
        w.branch(w.binary("icmp ugt", spent, w.binary("shl", longest, 1)), longer, on, unlikely=True)
        w.block(longer)
        self._store(self._at_most(spent, w.binary("shl", longest, 2)), self._longest)
        self._store("2", self._turns)
        w.jump(on)
        w.block(on)

    def _spent(self) -> str:
        """Time since the clock was last read, times 64."""
        w = self.w
        return w.binary("shl", w.binary("sub", self._clock(), self._load(self._began)), 6)

    def _learn(self, place: str, cost: str) -> None:
        """Updates an average with a cost of weight 1/4. It is limited to four times the average, since other processes
        may have run meanwhile."""
        w = self.w
        known = self._load(place)
        fourth = w.binary("lshr", self._at_most(cost, w.binary("shl", known, 2)), 2)
        before = w.binary("sub", known, w.binary("lshr", known, 2))
        is_first = w.binary("icmp eq", known, 0)
        self._store(w.select(is_first, cost, w.binary("add", before, fourth)), place)

    def _at_most(self, number: str, most: str) -> str:
        return self.w.select(self.w.binary("icmp ult", number, most), number, most)

    def _clock(self) -> str:
        # The cycle counter of x86. Other processors don't let programs read theirs, but have a clock.
        return self.w.intrinsic("readcyclecounter" if processor.family() == "x86-64" else "readsteadycounter", "i64")

    def _load(self, place: str) -> str:
        return self.w.load("i64", place)

    def _store(self, text: str, place: str) -> None:
        self.w.store("i64", text, place)

"""The promises of docs/staging.md and docs/migrating.md, each with programs that keep it.

A promise is an item of a list in these pages, named here by its first words. `test_promises.py` runs the programs in
every mode, and sees that no promise is without one.
"""

from tests.promises import flow, migrating, state, values
from tests.promises.registry import CHECKED, ELSEWHERE, GIVEN, KEPT, REFUSED

__all__ = ["CHECKED", "ELSEWHERE", "GIVEN", "KEPT", "REFUSED", "flow", "migrating", "state", "values"]

"""Makes sure that `runtime` is this project's package before anything of it is imported.

A `runtime.py` or `runtime` folder of the user's, beside their script or in the current folder, comes first on Python's
path. Importing it would run the user's program from within `import autograph`, then fail for want of a name that says
nothing of the cause.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

NAME = "runtime"


def check() -> None:
    """Raises ImportError if Python finds another module as `runtime`, or has imported one."""
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), NAME)
    loaded = sys.modules.get(NAME)
    try:
        place = _place(importlib.util.find_spec(NAME), loaded)
    except ValueError:  # a module that was made by hand, without a spec
        place = _place(None, loaded)
    if place is None and loaded is None:
        raise ImportError(
            f"autograph needs its own package '{NAME}', which isn't installed beside it: {own} is missing\n"
            "  fix: install autograph-numba again; its packages 'autograph' and 'runtime' belong together",
            name=NAME,
            path=own,
        )
    if place is not None and _is_same(place, own):
        return
    where = f"the module {place}" if place else f"{loaded!r}"
    if loaded is not None:
        what = f"Python has imported {where} under that name already"
        again = f" Then start Python anew: in this process '{NAME}' stays what it is."
    else:
        what = f"Python finds {where} under that name first"
        again = ""
    raise ImportError(
        f"autograph needs its own package '{NAME}' ({own}), but {what}\n"
        "  cause: Python looks in the script's folder, or the current one, and in PYTHONPATH before it looks among "
        "installed packages\n"
        f"  fix: give that file or folder another name, such as 'my_{NAME}', and change what imports it.{again}",
        name=NAME,
        path=place or None,
    )


def _place(spec: ModuleSpec | None, loaded: ModuleType | None) -> str | None:
    """The file of a module, or the folder of a package; None where there is neither."""
    if spec is not None and spec.submodule_search_locations:
        return str(next(iter(spec.submodule_search_locations)))
    if spec is not None and spec.has_location:
        return spec.origin
    return getattr(loaded, "__file__", None)


def _is_same(one: str, other: str) -> bool:
    return os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))

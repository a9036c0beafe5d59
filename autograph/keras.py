"""`ag.keras`: Keras 3, running on this project. `from autograph.keras import layers` works as with `tensorflow.keras`.

The import of this module gives Keras' own package in its place.
"""

import sys
from typing import TYPE_CHECKING, Any

from autograph.facade.keras import load

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


sys.modules[__name__] = load()

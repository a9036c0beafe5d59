"""`ag.keras`: Keras 3, running on this project. `from autograph.keras import layers` works as with `tensorflow.keras`.

The import of this module gives Keras' own package in its place.
"""

import sys

from autograph.facade.keras import load

sys.modules[__name__] = load()

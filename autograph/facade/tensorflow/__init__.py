"""What the modules named `tensorflow` have. Each file here has a table MODULES: module → names beside those of ours.

modules.py        makes the modules: those of `autograph`, and what the other files add
identity.py       the names of classes by which libraries know tensors and datasets
core.py           `tensorflow` itself: type specs, composite tensors, dtypes of resources, versions
tracking.py       `tf.__internal__.tracking`: objects that know what they consist of
internal.py       `tf.__internal__`: graphs for shapes, smart conditions, replicas
compat_v1.py      `tf.compat.v1`: the few names that programs of TensorFlow 2 use
distribution.py   `tf.distribute`: the classes that nothing here is an instance of
raw_ops.py        `tf.raw_ops`: those that libraries call, by the functions that do the same
private.py        `tensorflow.python`, `tensorflow.compiler`: what Keras imports of them
"""

from autograph.facade.tensorflow import identity, modules

__all__ = ["identity", "modules"]

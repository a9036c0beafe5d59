"""The names under which programs and libraries written for TensorFlow 2 find this project.

    installation.py   puts modules named `tensorflow` and `tensorflow.*` into `sys.modules`, and takes them out again
    keras.py          Keras 3 on them: `ag.keras`
    script.py         `autograph run SCRIPT.py`
    text.py           strings as bytes and text, of `tf.compat`
    tensorflow/       what the modules have beside the public names: one file for each part of TensorFlow

`import autograph` imports none of it but `installation.py` and `text.py`, which are small.
"""

"""TensorFlow's own guides on this project: `python -m tests.guides`."""

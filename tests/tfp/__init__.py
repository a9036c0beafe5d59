"""TensorFlow Probability's own tests on this project: `python -m tests.tfp`."""

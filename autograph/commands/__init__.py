"""The commands of `python -m autograph`, one module each."""

"""The conversion of Python functions: one pass per file, listed in pipeline.py; api.py is the way in."""

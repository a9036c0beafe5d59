"""Graph passes: each one file, changing a graph in place; `pipeline.py` holds the list."""

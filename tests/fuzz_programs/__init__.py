"""Random Python programs with lists, dictionaries and objects: see `__main__`."""

"""Files that hold tensors: written whole or not at all, read with all that they say checked."""

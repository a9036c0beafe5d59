"""The op table and the public functions over it, one file per family."""

"""Programs and their state in files: checkpoints."""

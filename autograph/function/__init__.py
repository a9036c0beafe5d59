"""`@ag.function`: from a Python function to traced graphs, one per signature."""

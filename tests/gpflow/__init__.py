"""GPflow's own tests."""

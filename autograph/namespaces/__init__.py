"""The modules that users reach as `ag.math`, `ag.nn`, ... Each only hands on names of the runtime."""

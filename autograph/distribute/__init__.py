"""Strategies: how a program runs as several replicas, which see different data and keep their variables equal."""

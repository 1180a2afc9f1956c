"""Experiments: the tables and figures of the paper, each in a module of its own, from settings to files."""

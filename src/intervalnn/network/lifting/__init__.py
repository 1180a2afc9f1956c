"""Lifting: a program over tensors to a program over intervals."""

"""Random members of each class of fault that once was silent: ``benchmarks/stress.py`` tries them.

A member either gives bounds that are checked, or is refused by a clear error; anything else is a fault.
"""

"""Capture: a user's module to one flat graph of ATen operations, and whether that is the module's own."""

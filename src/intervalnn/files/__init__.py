"""Files: whole or not at all, within limits, under names that no terminal obeys."""

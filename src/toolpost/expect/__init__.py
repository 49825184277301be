"""Patterns over what a run recorded, and what a test expects of it. Pure: no I/O, no event loop."""

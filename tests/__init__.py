"""Mirrors src/toolpost; `behaviour` holds the tests that use the public API alone."""

"""One module for each client that is measured, each with a class `Client`: see `bench/client.py`.

The libraries of the peers are imported by name: they are installed in environments of their own, where the
type checker does not look.
"""

"""What a test and the agents of its cases both hold: the agents import it."""

from __future__ import annotations

import threading

release = threading.Event()
"""What an agent can wait for outside of Python's reach."""

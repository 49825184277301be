"""Where a trace function, such as coverage's, gets in the way of a test."""

from __future__ import annotations

import sys

import pytest

breaks_what_sleeps = pytest.mark.skipif(
    sys.version_info < (3, 12) and sys.gettrace() is not None,
    reason="Python 3.11 spins in every traced thread while an exception waits for one that sleeps outside",
)
"""The test raises an exception in a thread that does not see it until it comes back to Python."""

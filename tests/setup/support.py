"""What the tests of the set-up share."""

from __future__ import annotations

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))


def required(variable: str) -> str:
    """Return a variable that `make test` sets; a test without its tool is an error, never a skip."""
    value = os.environ.get(variable)
    if not value:
        raise AssertionError(f"{variable} is not set: run these tests with `make test`")
    return value

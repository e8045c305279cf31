"""The one error of `explain`."""

from __future__ import annotations


class InputError(ValueError):
    """The input cannot be read; the message says what, why and what to do. Exit code 2."""

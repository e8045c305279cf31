"""Errors that are the user's to mend: the message says what is, why, and what to do. Exit code 2."""

from __future__ import annotations


class InputError(ValueError):
    """The input cannot be read; the message says what, why and what to do. Exit code 2."""


class UsageError(ValueError):
    """The user asked for something that cannot be; the text says what is, what it clashes with and what to do."""

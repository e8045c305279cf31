"""Writes the schemas beside the code that makes them; for developers."""

from __future__ import annotations

from cudnn_doctor.schemas import DOCUMENTS, made_from_types, path_of

for name in DOCUMENTS:
    path_of(name).write_text(made_from_types(name), encoding="utf-8")

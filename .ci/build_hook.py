"""Compiles the knowledge of `explain` when a wheel or an editable install is built."""

from __future__ import annotations

import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KnowledgeHook(BuildHookInterface[Any]):
    """Writes cudnn_doctor/knowledge/explain.json, which git ignores and the wheel holds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        sys.path.insert(0, self.root)
        from cudnn_doctor.logs.patterns import write

        write()
        build_data["artifacts"].append("/cudnn_doctor/knowledge/explain.json")

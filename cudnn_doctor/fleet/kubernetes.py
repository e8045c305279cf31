"""Kubernetes: manifests, printed and not applied. An Indexed Job puts one pod on each node (they refuse to share one),
asks for no GPU, so that it does not wait for one that is held, and the reports come back as logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cudnn_doctor.model.errors import UsageError

NAME = "cudnn-doctor"
HOST = "kubernetes.io/hostname"  # the label that every node bears


def manifest(nodes: Sequence[str], image: str, check: Sequence[str], timeout: float, namespace: str) -> dict[str, Any]:
    """The Job.

    Raises:
        UsageError: no nodes are given.
    """
    if not nodes:
        raise UsageError("fleet kubernetes needs --nodes: `kubectl get nodes -o name` lists them.")
    labels = {"app.kubernetes.io/name": NAME}
    container = {
        "name": "check",
        "image": image,
        "command": [*check, "--node", "$(NODE_NAME)"],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},  # all GPUs are seen, none is taken
        ],
    }
    chosen = {"matchExpressions": [{"key": HOST, "operator": "In", "values": list(nodes)}]}
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [chosen]}},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": len(nodes),
            "parallelism": len(nodes),
            "backoffLimitPerIndex": 0,  # exit 1 is an answer: one node's does not end the others (Kubernetes 1.29)
            "activeDeadlineSeconds": max(1, round(timeout)),
            "ttlSecondsAfterFinished": 3600,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }

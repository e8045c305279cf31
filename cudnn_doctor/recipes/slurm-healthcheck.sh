#!/bin/sh
# Slurm health check: drains a node whose driver, GPU or cuDNN has a fault of the node's owner.
# HealthCheckProgram=/etc/slurm/slurm-healthcheck.sh  HealthCheckInterval=300  HealthCheckNodeState=ANY
# Slurm ignores its exit code: it must drain the node itself.
said=$(timeout 50 cudnn-doctor check --owner node --no-live --quiet 2>&1)
if [ $? -eq 1 ]; then
    reason=$(printf '%s\n' "$said" | head -n 1 | cut -c 1-160)
    scontrol update NodeName="$(hostname -s)" State=DRAIN Reason="cudnn-doctor: $reason"
fi
exit 0

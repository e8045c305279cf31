#!/bin/sh
# Slurm prolog: drains the node and requeues the job on a fault of the node's owner.
# Prolog=/etc/slurm/slurm-prolog.sh  PrologFlags=Alloc
# Run as root on each node before the job. Exit 1 drains the node and requeues the job, so only
# what the node's owner must fix counts; "no verdict" (2) and a timeout (124) let the job run.
said=$(timeout 50 cudnn-doctor check --owner node --quiet --timeout 30 2>&1)
if [ $? -eq 1 ]; then
    logger -t cudnn-doctor -- "$said"
    exit 1
fi
exit 0

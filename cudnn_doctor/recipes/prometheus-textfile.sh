#!/bin/sh
# Prometheus: the exit code as a gauge for node_exporter's textfile collector; run it from a timer.
# Written beside and moved, so that no half file is read.
dir=${1:-/var/lib/prometheus/node-exporter}
cudnn-doctor check --owner node --no-live --quiet > /dev/null 2>&1
code=$?
{
    echo '# HELP cudnn_doctor_exit_code 0 nothing wrong, 1 a problem, 2 no verdict.'
    echo '# TYPE cudnn_doctor_exit_code gauge'
    echo "cudnn_doctor_exit_code $code"
} > "$dir/cudnn_doctor.prom.$$"
mv "$dir/cudnn_doctor.prom.$$" "$dir/cudnn_doctor.prom"

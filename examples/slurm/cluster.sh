#!/bin/bash
#SBATCH --job-name=finskillbench
#SBATCH --ntasks=9
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=2G
#SBATCH --time=04:00:00
#
# One run on a Dask cluster of this job's own: one task of the job is the driver's, the others are workers.
#
#     sbatch cluster.sh EDITION RUN --model baseline/reference --condition curated
#
# EDITION and RUN are folders that every node reaches. Budget and rate limits hold across all workers.
set -euo pipefail

edition=${1:?usage: sbatch cluster.sh EDITION RUN [options of finskillbench run]}
run=${2:?usage: sbatch cluster.sh EDITION RUN [options of finskillbench run]}
shift 2

place=$(mktemp -d "$PWD/dask.XXXXXX")
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$place"' EXIT

dask scheduler --scheduler-file "$place/scheduler.json" --no-dashboard > "$place/scheduler.log" 2>&1 &
srun --ntasks="$((SLURM_NTASKS - 1))" \
    dask worker --scheduler-file "$place/scheduler.json" --nthreads 1 --no-dashboard > "$place/workers.log" 2>&1 &
until [ -s "$place/scheduler.json" ]; do sleep 1; done

address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' "$place/scheduler.json")
finskillbench run --edition "$edition" --out "$run" --cluster "$address" "$@"

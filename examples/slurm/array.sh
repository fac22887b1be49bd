#!/bin/bash
#SBATCH --job-name=finskillbench
#SBATCH --array=1-8
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#
# One part of a run for each task of the array; a part that is submitted again goes on where it stopped.
#
#     array=$(sbatch --parsable array.sh EDITION RUNS --model baseline/reference --condition curated)
#     sbatch --dependency=afterok:$array merge.sh RUNS
#
# EDITION and RUNS are folders that every node reaches; the rest are options of `finskillbench run`. --max-cost and the
# limits of a provider hold for each part alone: divide them by the number of parts, or use a cluster (cluster.sh).
set -euo pipefail

edition=${1:?usage: sbatch array.sh EDITION RUNS [options of finskillbench run]}
runs=${2:?usage: sbatch array.sh EDITION RUNS [options of finskillbench run]}
shift 2

finskillbench run --edition "$edition" --out "$runs/part$SLURM_ARRAY_TASK_ID" \
    --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" "$@"

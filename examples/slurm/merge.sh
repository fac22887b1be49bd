#!/bin/bash
#SBATCH --job-name=finskillbench-merge
#SBATCH --time=00:30:00
#
# One run folder of the parts that array.sh made: sbatch --dependency=afterok:JOB merge.sh RUNS
set -euo pipefail

runs=${1:?usage: sbatch merge.sh RUNS}

finskillbench merge "$runs/whole" "$runs"/part*

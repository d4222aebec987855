#!/bin/bash
# A run on a Ray cluster that is there already: submit.sh of verl, SkyRL, NeMo-RL or KubeRay started it.
#
# rlaudit is installed in the cluster's environment, on the head and on every node, beside whatever else is there;
# engines have interpreters of their own. /shared is seen by all nodes, and holds the run, the environments and the model.
# The job itself needs no GPU: each cell takes its own from Ray. Without a way to submit jobs, the last line runs on the
# head as it is.
set -euo pipefail

ray job submit --address "${RAY_API_SERVER_ADDRESS:-http://127.0.0.1:8265}" --entrypoint-num-cpus 0 -- \
  env RLAUDIT_CACHE_DIR=/shared/cache/rlaudit rlaudit ablate v0-to-v1 --executor ray --run-dir /shared/runs/v0-to-v1 \
  --output html:/shared/runs/v0-to-v1.html

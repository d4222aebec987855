"""A trainer that learns nothing: it plays the turns of rlaudit/trainer/train.py, and can be told to go wrong."""

import json
import os
import sys
from pathlib import Path


def tell(message):
    print(json.dumps(message), flush=True)


def ask(message):
    tell(message)
    return json.loads(sys.stdin.readline())


job = json.loads(sys.stdin.readline())
for step in range(1, job["steps"] + 1):
    rollout = ask({"do": "sample", "requests": [{"prompt": place, "seed": place} for place in (0, 1, 0)]})
    if job.get("dies_at") == step:
        print("out of luck", file=sys.stderr)
        sys.exit(7)
    if job.get("killed_at") == step:
        os.kill(os.getpid(), 9)
    row = {"step": step, "rl/reward": 0.5, "rl/clamp_log_ratio_new_old_indicator": 0.0, "version": rollout["version"]}
    row["logprobs"] = [sample["logprobs"] for sample in rollout["samples"]]
    row["cached"] = [sample["cached_tokens"] for sample in rollout["samples"]]
    tell({"do": "log", "row": row})
    if step < job["steps"]:
        weights = Path(job["weights"])
        weights.mkdir(exist_ok=True)
        (weights / "weights.json").write_text(json.dumps({"version": step}))
        ask({"do": "update", "path": job["weights"], "version": step})
tell({"do": "end", "result": {"seconds": {"generate": 0.0}, "vllm": sorted(n for n in os.environ if "VLLM" in n)}})

"""A trainer that learns nothing: it plays the turns of rlaudit/trainer/train.py, and can be told to go wrong."""

import json
import os
import sys
from pathlib import Path

LOGGED = (
    "rl/reward", "rl/entropy", "rl/new_logprobs", "rl/kl_new_old", "rl/clamp_log_ratio_new_old_indicator",
    "rl/ratio_new_old", "stats/lag", "rlaudit/cached_tokens", "rlaudit/backend_k3", "rlaudit/raw_k3",
    "rlaudit/processed_k3",
)  # fmt: skip


def tell(message):
    print(json.dumps(message), flush=True)


def ask(message):
    tell(message)
    return json.loads(sys.stdin.readline())


job = json.loads(sys.stdin.readline())
once = Path(job.get("model", "no/model")).parent / "kill-once"
for step in range(1, job["steps"] + 1):
    rollout = ask({"do": "sample", "requests": [{"prompt": place, "seed": place} for place in (0, 1, 0)]})
    if job.get("dies_at") == step:
        print("out of luck", file=sys.stderr)
        sys.exit(7)
    if job.get("killed_at") == step:
        os.kill(os.getpid(), 9)
    if step == 2 and once.exists():
        # Whoever started this one: the process that holds the engine.
        once.unlink()
        os.kill(os.getppid(), 9)
    row = {"step": step, "version": rollout["version"], **dict.fromkeys(LOGGED, 0.5)}
    row["logprobs"] = [sample["logprobs"] for sample in rollout["samples"]]
    row["cached"] = [sample["cached_tokens"] for sample in rollout["samples"]]
    tell({"do": "log", "row": row})
    if step < job["steps"]:
        weights = Path(job["weights"])
        weights.mkdir(exist_ok=True)
        (weights / "weights.json").write_text(json.dumps({"version": step}))
        ask({"do": "update", "path": job["weights"], "version": step})
tell({"do": "end", "result": {"seconds": {"generate": 0.0}, "vllm": sorted(n for n in os.environ if "VLLM" in n)}})

"""A trainer that learns nothing: it plays the turns of laboratory/trainer/train.py, and can be told to go wrong."""

import json
import os
import sys
from pathlib import Path

LOGGED = (
    "rl/reward", "rl/entropy", "rl/new_logprobs", "rl/kl_new_old", "rl/clamp_log_ratio_new_old_indicator",
    "rl/ratio_new_old", "stats/lag",
)  # fmt: skip


def tell(message):
    print(json.dumps(message), flush=True)


def ask(message):
    tell(message)
    return json.loads(sys.stdin.readline())


def begin_until(count):
    while len(begun) < min(count, job["steps"]):
        requests = [{"prompt": place, "seed": place} for place in (0, 1, 0)]
        tell({"do": "begin", "batch": len(begun), "requests": requests})
        begun.append(requests)


job = json.loads(sys.stdin.readline())
once = Path(job.get("model", "no/model")).parent / "kill-once"
begun, met = [], 0
for step in range(1, job["steps"] + 1):
    begin_until(step - 1 + max(1, job["lag"]))
    rollout = ask({"do": "collect", "batch": step - 1})
    begin_until(step + job["lag"])
    if job.get("dies_at") == step:
        print("out of luck", file=sys.stderr)
        sys.exit(7)
    if job.get("killed_at") == step:
        os.kill(os.getpid(), 9)
    if step == 2 and once.exists():
        # Whoever started this one: the process that holds the engine.
        once.unlink()
        os.kill(os.getppid(), 9)
    row = {"step": step, **dict.fromkeys(LOGGED, 0.5), "rlaudit/in_flight": met}
    row["versions"] = [sample["versions"] for sample in rollout["samples"]]
    row["logprobs"] = [sample["logprobs"] for sample in rollout["samples"]]
    tell({"do": "log", "row": row})
    if step < job["steps"]:
        weights = Path(job["weights"])
        weights.mkdir(exist_ok=True)
        (weights / "weights.json").write_text(json.dumps({"version": step}))
        source = {"from": "disk", "path": job["weights"]}
        met = ask({"do": "update", "source": source, "version": step})["in_flight"]
tell(
    {
        "do": "end",
        "result": {
            "seconds": {"generate": 0.0},
            "loop_seconds": 0.0,
            "vllm": sorted(n for n in os.environ if "VLLM" in n),
        },
    }
)

"""Checkpoints of the stand-in engine: a number in a file."""

import json
from pathlib import Path


def run(job, channel):
    made = {}
    for order in job["make"]:
        folder = Path(job["output"]) / order["name"]
        folder.mkdir(parents=True, exist_ok=True)
        version = {"version": int(order["name"].rpartition("-")[2])} if "after" in order else {}
        text = json.dumps(version) if version else "broken"
        (folder / "weights.json").write_text(text)
        made[order["name"]] = {"path": str(folder)}
    return {"made": made, "model": job["model"]}

"""Checkpoints of the stand-in engine: a number in a file."""

import json
from pathlib import Path


def run(job, channel):
    for order in job["make"]:
        folder = Path(job["output"]) / order["name"]
        folder.mkdir(parents=True, exist_ok=True)
        known = "new" not in order
        text = json.dumps({"version": int(order["name"].rpartition("-")[2])}) if known else "broken"
        (folder / "adapter").mkdir(exist_ok=True)
        for holds in (folder, folder / "adapter"):
            (holds / "weights.json").write_text(text)
    return {"model": job["model"]}

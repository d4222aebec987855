"""Scores with the stand-in model: every token has the logprob of its checkpoint's version."""

import json
from pathlib import Path

import numpy as np


def run(job, channel):
    version = json.loads((Path(job["model"]) / "weights.json").read_text())["version"]
    lengths = [len(sequence["token_ids"]) for sequence in job["sequences"]]
    offsets = np.cumsum([0, *lengths])
    logprobs = np.full(offsets[-1], -(1.0 + version))
    np.savez(channel.path("scores.npz"), offsets=offsets, trainer_logprobs=logprobs)
    return {}

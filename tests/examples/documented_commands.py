"""Command lines that the documentation shows, each run in a folder of its own that holds the files it names."""

import os
import re
import shlex
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from toy_server import Toy, serving

from rlaudit.cli.app import run

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a line writes, and others may read.
WRITTEN = re.compile(r"--(?:into |output \w+:)(\S+)")
# What of these a machine without engines can do: the arms themselves are run by the tests marked `engine`.
NOT_STARTED = {"ablate": "--dry-run", "cell": "--help"}
# A training that was recorded before.
TRAINING = """\
import os, shutil
if "RLAUDIT_RECORD" in os.environ:
    shutil.copytree({recorded!r}, os.environ["RLAUDIT_RECORD"], dirs_exist_ok=True)
"""


def blocks(text):
    """(language, content) of every fenced block of a Markdown text."""
    return [(found[1], found[2]) for found in FENCE.finditer(text)]


def command_lines(content):
    """The lines of a block that are typed; comments behind them go."""
    joined = content.replace("\\\n", " ")
    return [
        line.split("  #")[0].strip() for line in joined.splitlines() if line.startswith(("rlaudit ", "pip ", "uv "))
    ]


def rlaudit_words(line):
    """The arguments of one `rlaudit` line, as this machine can run it."""
    words = shlex.split(line)
    assert words[0] == "rlaudit", line
    started = NOT_STARTED.get(words[1])
    return words[1:] if started is None or started in words or "--help" in words else [*words[1:], started]


def run_line(line, folder, monkeypatch, lines=()):
    """Run a `rlaudit` line in `folder`, after those of `lines` that write what it reads; return its exit code."""
    lay_out(folder)
    monkeypatch.chdir(folder)
    # `python` is this one, and whatever cluster this machine belongs to is not the documentation's.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    read = set(line.split())
    for earlier in dict.fromkeys(lines):
        if earlier != line and read & set(WRITTEN.findall(earlier)):
            run(rlaudit_words(earlier))
    with ExitStack() as servers:
        return run([_served(word, servers) for word in rlaudit_words(line)])


def _served(word, servers):
    """The word, or the address of a small server in place of that of a user's."""
    return servers.enter_context(serving(Toy())) if re.fullmatch(r"http://\w+:8000", word) else word


def lay_out(folder):
    """Every file that a documented command names, made small."""
    config = ROOT / "examples" / "pipelinerl" / "v0-config-on-v1" / "base.yaml"
    shutil.copy(config, folder / "base.yaml")
    (folder / "conf").mkdir()
    shutil.copy(config, folder / "conf" / "base.yaml")
    (folder / "runs").mkdir()
    shutil.copytree(ROOT / "examples" / "vllm" / "v0-to-v1", folder / "runs" / "v0-to-v1")
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    recorded = ROOT / "examples" / "recorded" / "trl-0.8.5-to-0.10.2"
    (folder / "SmolLM2-135M-Instruct").mkdir()  # what the recordings name as their model
    shutil.copytree(recorded / "v0", folder / "before")
    shutil.copytree(recorded / "v1", folder / "after")
    (folder / "train.py").write_text(TRAINING.format(recorded=str(recorded / "v1")))
    (folder / "run.sh").write_text('python train.py "$@"\n')
    (folder / "your-checkpoint").mkdir()
    (folder / "your-checkpoint" / "config.json").write_text('{"model_type": "llama", "dtype": "bfloat16"}')
    (folder / "your-prompts.jsonl").write_text('{"prompt": "Why is the sky blue?"}\n')
    rng = np.random.default_rng(0)
    with (folder / "rollouts.jsonl").open("w") as file:
        for prompt in range(48):
            ids = rng.integers(0, 900, 60)
            rollout = -np.where(rng.random(60) < 0.5, 0.01, 1.0) * rng.exponential(1.0, 60)
            trainer = np.minimum(rollout + 1e-3 * rng.standard_normal(60), 0.0)
            columns = {"token_id": ids, "rollout_logprob": rollout, "trainer_logprob": trainer}
            said = ", ".join(f'"{name}": {values.tolist()}' for name, values in columns.items())
            file.write(f'{{"prompt_id": {prompt}, "sample_id": 0, {said}}}\n')
    shutil.copy(folder / "rollouts.jsonl", folder / "new.jsonl")
    (folder / "history").mkdir()
    for name in ("before", "after", *(f"history/{number}" for number in range(10))):
        steps = np.arange(200)
        values = 0.5 + 0.02 * rng.standard_normal(200)
        k3 = 0.004 * rng.lognormal(0.0, 0.2, 200)
        rows = "".join(f"{step},{value:.6f},{far:.6f}\n" for step, value, far in zip(steps, values, k3, strict=True))
        (folder / f"{name}.csv").write_text(f"step,reward,k3\n{rows}")

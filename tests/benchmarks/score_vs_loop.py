"""Scoring against the loop everybody writes: one sequence at a time, full logits, log_softmax, gather.

    PYTHON tests/benchmarks/score_vs_loop.py --model PATH [--python TRAINER_PYTHON] [--sequences FILE] [--optional]

Both sides score the same tokens with the same loaded weights in float32, alternating, so that a slow minute of
the machine hits both. Peak memory comes from a process of its own per side. --optional adds, as a third side, the
candidate meanings and support grids that an audit asks for.
"""

import argparse
import importlib.util
import json
import random
import subprocess
import sys
import time
from pathlib import Path

SCORE = Path(__file__).resolve().parents[2] / "rlaudit" / "trainer" / "score.py"
SIDES = ("loop", "score", "score+optional")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--python", help="interpreter of the trainer environment; default: this one")
    parser.add_argument("--sequences", help="JSON list of {prompt_token_ids, token_ids}; default: random tokens")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--optional", action="store_true")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    return parser.parse_args()


def sequences_of(path, vocabulary):
    """The file's sequences, or 32 of chat-like lengths."""
    if path:
        return json.loads(Path(path).read_text())
    draw = random.Random(0)

    def tokens(low, high):
        return [draw.randrange(3, vocabulary) for _ in range(draw.randint(low, high))]

    return [{"prompt_token_ids": tokens(24, 64), "token_ids": tokens(48, 96)} for _ in range(32)]


def optional_outputs():
    """About what rlaudit.meaning.candidates asks for: temperatures, filters, penalties, support grids."""
    grid = [*range(4, 17), *range(18, 33, 2)]
    candidates = [{"name": f"T{8 / step:g}", "temperature": 8 / step} for step in grid]
    for temperature in (1.0, 0.7):
        candidates += [{"name": "k", "temperature": temperature, "top_k": k} for k in (20, 50)]
        candidates += [{"name": "p", "temperature": temperature, "top_p": p} for p in (0.95, 0.9, 0.8)]
        candidates += [{"name": "m", "temperature": temperature, "min_p": 0.05}]
        candidates += [{"name": "r", "temperature": temperature, "repetition_penalty": r} for r in (1.05, 1.1)]
    return {
        "candidates": candidates,
        "nucleus_grid": [0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999],
        "top_k_grid": [1, 5, 10, 20, 30, 50, 100, 200, 500],
        "min_p_grid": [0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001, 0.0001],
    }


class Quiet:
    """A channel that keeps nothing."""

    Unsupported = RuntimeError


def build(model_path, sequences_file):
    """Load once; returns {side: function giving the flat logprobs} and the sequences."""
    import numpy as np
    import torch

    spec = importlib.util.spec_from_file_location("rlaudit_score", SCORE)
    score = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(score)
    np.finfo(np.float32), np.finfo(np.float64)
    torch.set_flush_denormal(True)
    job = {"model": model_path, "dtype": "float32", "head_dtype": "float32", "attention": "sdpa"}
    model = score.causal_model.load(job)
    sequences = sequences_of(sequences_file, model.vocabulary)

    @torch.inference_mode()
    def loop():
        found = []
        for sequence in sequences:
            ids = torch.tensor([sequence["prompt_token_ids"] + sequence["token_ids"]])
            logprobs = torch.log_softmax(model.model(ids).logits[0], dim=-1)
            first = len(sequence["prompt_token_ids"])
            found.append(logprobs[first - 1 : -1].gather(1, ids[0, first:, None])[:, 0].numpy())
        return np.concatenate(found)

    def scored(extra):
        reader = score.read_logits.LogitReader({"temperature": 1.0, "top_logprobs": 5, **extra})
        lengths = [len(s["prompt_token_ids"]) + len(s["token_ids"]) for s in sequences]
        offsets = np.cumsum([0] + [len(s["token_ids"]) for s in sequences])

        @torch.inference_mode()
        def side():
            scorer = score.Scorer(model, reader, 256)
            found = np.empty(offsets[-1])
            for group in score.batches(lengths, score.batch_size({}, model.device)):

                def take(place, first, readings, group=group):
                    begin = offsets[group[place]] + first
                    values = readings["trainer_logprobs"]
                    found[begin : begin + len(values)] = values

                scorer.score([sequences[place] for place in group], take)
            return found

        return side

    return {"loop": loop, "score": scored({}), "score+optional": scored(optional_outputs())}, sequences


def peak_mib(reset=True):
    """Peak resident memory since the last reset (Linux); loading a checkpoint would hide what scoring takes."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main():
    options = arguments()
    if options.python and not options.side:
        command = [
            options.python,
            "-s",
            __file__,
            *(a for a in sys.argv[1:] if a not in ("--python", options.python)),
        ]
        return subprocess.call(command)
    import numpy as np

    sides, sequences = build(options.model, options.sequences)
    if options.side:
        resting = peak_mib()
        sides[options.side]()
        print(json.dumps({"resting": resting, "peak": peak_mib(reset=False)}))
        return 0
    names = SIDES if options.optional else SIDES[:2]
    seconds, answers = {name: [] for name in names}, {}
    for repetition in range(-1, options.repetitions):  # the first round warms up and is not counted
        for name in names if repetition % 2 else reversed(names):
            started = time.perf_counter()
            answers[name] = sides[name]()
            if repetition >= 0:
                seconds[name].append(time.perf_counter() - started)
    total = sum(len(s["prompt_token_ids"]) + len(s["token_ids"]) for s in sequences)
    print(f"{len(sequences)} sequences, {total} tokens, {len(answers['loop'])} of them sampled, float32")
    for name in names:
        ratios = np.array(seconds["loop"]) / np.array(seconds[name])
        command = [sys.executable, "-s", __file__, "--model", options.model, "--side", name]
        command += ["--sequences", options.sequences] if options.sequences else []
        memory = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        print(
            f"{name:15s} {total / np.median(seconds[name]):8.1f} tokens/s  median ratio {np.median(ratios):.2f} "
            f"(min {ratios.min():.2f}, max {ratios.max():.2f}, {len(ratios)} rounds)  "
            f"max |difference| {np.abs(answers[name] - answers['loop']).max():.1e} nats  "
            f"{memory['peak'] - memory['resting']:.0f} MiB above the {memory['resting']:.0f} of the loaded model",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

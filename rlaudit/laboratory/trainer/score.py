"""Scores sampled token ids as a trainer would: one teacher-forced pass.

A worker script (see engines/cells/worker.py): `run(job, channel)` inside the trainer's interpreter, which holds
torch, transformers and numpy but no rlaudit. Python 3.9 syntax. It loads its two neighbours by path:
SHIPPED_WITH names them, because they decide a score as much as this file does.

Covered: any causal model that separates body and head, in float32, bfloat16 or float16, the head in another precision,
models on several GPUs of one machine. Not covered: adapters that are not merged, multimodal inputs.
"""

import importlib.util
import time
from pathlib import Path

import numpy as np
import torch

SHIPPED_WITH = ("causal_model.py", "read_logits.py")
# Past this the activations of a batch leave a CPU's cache, and larger batches are slower (measured: 20 % at 4096).
CPU_BATCH_TOKENS = 512


def neighbour(name):
    """Load a file shipped beside this one as a module, by its path: rlaudit is not installed here."""
    path = Path(__file__).resolve().parent / (name + ".py")
    spec = importlib.util.spec_from_file_location("rlaudit_trainer_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


causal_model = neighbour("causal_model")
read_logits = neighbour("read_logits")


def check_sequences(sequences, vocabulary):
    """Raise ValueError naming the first sequence with an empty prompt or a token id beyond the vocabulary."""
    for place, sequence in enumerate(sequences):
        prompt, sampled = sequence["prompt_token_ids"], sequence["token_ids"]
        if not prompt:
            raise ValueError(f"sequence {place} has an empty prompt: nothing predicts its first token")
        for token in (max(prompt + sampled), min(prompt + sampled)):
            if not 0 <= token < vocabulary:
                raise ValueError(
                    f"sequence {place} holds token id {token}, the vocabulary has {vocabulary} tokens: "
                    "was it sampled from another model?"
                )


def batches(lengths, batch_tokens):
    """Yield groups of sequences of similar length, longest first, each within batch_tokens when padded."""
    group = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if group and lengths[group[0]] * (len(group) + 1) > batch_tokens:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def batch_size(job, device):
    """Return the tokens per padded batch: what the job allows, or fewer if that is faster."""
    allowed = int(job.get("batch_tokens") or 4096)
    return min(allowed, CPU_BATCH_TOKENS) if device.type == "cpu" else allowed


class Scorer:
    """A model, the reader of its logits, and the buffer that both share."""

    def __init__(self, model, reader, chunk_positions):
        self.model, self.reader = model, reader
        shape = (chunk_positions, model.vocabulary)
        self.buffer = torch.empty(shape, dtype=torch.float32, device=model.device)
        self.block = read_logits.CPU_BLOCK if model.device.type == "cpu" else chunk_positions

    def score(self, sequences, take):
        """Score one batch, and call take(place in the batch, first token, readings) with each run of tokens."""
        device = self.model.device
        full = [sequence["prompt_token_ids"] + sequence["token_ids"] for sequence in sequences]
        lengths = torch.tensor([len(ids) for ids in full])
        padded = torch.zeros((len(full), int(lengths.max())), dtype=torch.int64)
        for row, ids in enumerate(full):
            padded[row, : len(ids)] = torch.tensor(ids)
        states = self.model.hidden(padded, lengths)
        # The state before a token is the one that predicts it.
        before = [len(sequence["prompt_token_ids"]) - 1 for sequence in sequences]
        sampled = [len(sequence["token_ids"]) for sequence in sequences]
        hidden = torch.cat([states[row, first : first + sampled[row]] for row, first in enumerate(before)])
        token_ids = torch.tensor([token for sequence in sequences for token in sequence["token_ids"]])
        token_ids = token_ids.to(device)
        firsts = np.cumsum([0, *sampled])
        for start in range(0, len(hidden), len(self.buffer)):
            part = hidden[start : start + len(self.buffer)]
            logits = self.model.logits(part, out=self.buffer[: len(part)])
            for begin in range(0, len(part), self.block):
                block = logits[begin : begin + self.block]
                runs = list(runs_of_sequences(sequences, firsts, start + begin, start + begin + len(block)))
                block_token_ids = token_ids[start + begin : start + begin + len(block)]
                readings = self.reader.read(block, block_token_ids, [context for _, context in runs])
                for place, context in runs:
                    part_of = {name: values[context.rows] for name, values in readings.items()}
                    take(place, context.first_output, part_of)


def runs_of_sequences(sequences, firsts, begin, end):
    """Yield the sequences of the tokens begin..end of a batch, each with its context for penalties."""
    for place in range(int(np.searchsorted(firsts, begin, side="right")) - 1, len(sequences)):
        low, high = max(begin, firsts[place]), min(end, firsts[place + 1])
        if firsts[place] >= end:
            return
        if low < high:
            prompt, sampled = (np.asarray(sequences[place][key]) for key in ("prompt_token_ids", "token_ids"))
            rows = slice(low - begin, high - begin)
            yield place, read_logits.Context(rows, prompt, sampled, low - firsts[place])


def micro_batch_floor(scorer, sequences, offsets, trainer_logprobs, wanted):
    """Return how far a score moves if a sequence is scored alone instead of in its batch: the trainer's noise.

    Returns sequences, tokens, mean, median and maximum of |d|, and k3, with d = in its batch - alone, in nats.
    """
    filled = [place for place in range(len(sequences)) if offsets[place + 1] > offsets[place]]
    chosen = filled[:: max(1, len(filled) // wanted)][:wanted] if wanted else []
    apart = []
    for place in chosen:
        alone = np.empty(offsets[place + 1] - offsets[place])

        def take(_, first, readings, alone=alone):
            alone[first : first + len(readings["trainer_logprobs"])] = readings["trainer_logprobs"]

        scorer.score([sequences[place]], take)
        in_batch = trainer_logprobs[offsets[place] : offsets[place + 1]].astype(np.float64)
        finite = np.isfinite(in_batch) & np.isfinite(alone)
        apart.append(in_batch[finite] - alone[finite])
    log_ratio = np.concatenate(apart) if apart else np.zeros(0)
    floor = {"sequences": len(chosen), "tokens": int(log_ratio.size)}
    size = np.abs(log_ratio)
    for name, value in (("mean_abs", np.mean), ("median_abs", np.median), ("max_abs", np.max)):
        floor[name] = float(value(size)) if size.size else None
    floor["k3"] = float(np.mean(np.expm1(log_ratio) - log_ratio)) if size.size else None
    return floor


@torch.inference_mode()
def run(job, channel):
    """Score the job's sequences into scores.npz; returns the record that is merged into result.json."""
    channel.phase("load")
    if not job["sequences"]:
        raise ValueError("the job holds no sequences to score")
    # e^-90 is 0 for every purpose here, and a denormal costs a hundred times as much. numpy checks subnormals at the
    # first finfo, and warns if they are already flushed.
    np.finfo(np.float32), np.finfo(np.float64)
    torch.set_flush_denormal(True)
    model = causal_model.load(job)
    sequences = job["sequences"]
    check_sequences(sequences, model.vocabulary)
    chunk = int(job.get("chunk_positions") or 256)
    probe = (sequences[0]["prompt_token_ids"] + sequences[0]["token_ids"])[: min(16, chunk)]
    head_check = model.check_head(torch.tensor([probe]))

    channel.phase("score")
    offsets = np.cumsum([0] + [len(sequence["token_ids"]) for sequence in sequences]).astype(np.int64)
    reader = read_logits.LogitReader(job)
    scorer = Scorer(model, reader, min(chunk, max(1, int(offsets[-1]))))
    arrays = {name: np.empty((offsets[-1], *tail), dtype) for name, (tail, dtype) in reader.columns().items()}
    lengths = [len(sequence["prompt_token_ids"]) + len(sequence["token_ids"]) for sequence in sequences]
    gpus = range(torch.cuda.device_count() if model.device.type == "cuda" else 0)
    for gpu in gpus:
        torch.cuda.reset_peak_memory_stats(gpu)
    started, done = time.perf_counter(), 0
    batch_tokens = batch_size(job, model.device)
    for group in batches(lengths, batch_tokens):

        def take(place, first, readings, group=group):
            begin = offsets[group[place]] + first
            for name, values in readings.items():
                arrays[name][begin : begin + len(values)] = values

        scorer.score([sequences[place] for place in group], take)
        done += sum(len(sequences[place]["token_ids"]) for place in group)
        channel.emit("progress", done=done, total=int(offsets[-1]), unit="tokens")
    seconds = time.perf_counter() - started
    floor = micro_batch_floor(
        scorer, sequences, offsets, arrays["trainer_logprobs"], int(job.get("floor_sequences") or 0)
    )
    write_scores(channel, dict(offsets=offsets, **arrays))
    outcome = {
        "tokens": int(offsets[-1]),
        "sequences": len(sequences),
        "seconds_scoring": seconds,
        "tokens_per_second": float(offsets[-1]) / seconds,
        "prompt_and_completion_tokens": sum(lengths),
        "batch_tokens": batch_tokens,
        "peak_memory_mib_logits": (len(scorer.buffer) + 4 * scorer.block) * model.vocabulary * 4 / 2**20,
        "head_check_max_abs": head_check,
        "micro_batch_floor": floor,
        "resolved": dict(model.resolved(), temperature=reader.trainer.temperature),
    }
    if gpus:
        outcome["peak_memory_mib_cuda"] = [torch.cuda.max_memory_allocated(gpu) / 2**20 for gpu in gpus]
    return outcome


def write_scores(channel, arrays):
    """Write scores.npz atomically."""
    part = Path(channel.path("scores.part.npz"))
    np.savez(part, **arrays)
    part.replace(channel.path("scores.npz"))

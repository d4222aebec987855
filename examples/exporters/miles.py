"""Miles: turn `train_data/*.pt` (--dump-details FOLDER) into JSONL for `rlaudit compare`, with the trainer's logprobs.

rlaudit never loads a pickle: loading one runs whatever is in it. In Miles' environment, on files that you wrote:

    python miles.py FOLDER/train_data rlaudit_tokens

Then: rlaudit compare rlaudit_tokens --temperature 1.0
Rollouts alone need no exporter: rlaudit compare FOLDER/dashboard_columns
"""

import json
import sys
from pathlib import Path


def lines(columns, rollout, seen):
    """One record per sample. columns: rollout_data of a rank, as lists. seen: what another rank has written already."""
    for row, index in enumerate(columns["sample_indices"]):
        tokens, own = columns["tokens"][row], columns["response_lengths"][row]
        if index in seen or not own:
            continue
        seen.add(index)
        prompt = tokens[:-own]
        yield {
            "prompt_id": " ".join(map(str, prompt)),
            "sample_id": f"rollout {rollout} sample {index}",
            "step": rollout,
            "prompt_token_ids": prompt,
            "token_id": tokens[-own:],
            "rollout_logprob": columns["rollout_log_probs"][row],
            "trainer_logprob": columns["log_probs"][row],
            "loss_mask": columns["loss_masks"][row],
            "trainer_version": rollout,
        }


def listed(column):
    """A column of tensors, or of numbers, as lists."""
    return [value.tolist() if hasattr(value, "tolist") else value for value in column]


def convert(folder, out):
    """Every file of a dump folder; the ranks of a rollout together."""
    import torch

    Path(out).mkdir(parents=True, exist_ok=True)
    seen = {}
    for path in sorted(Path(folder).glob("*.pt")):
        pack = torch.load(path, map_location="cpu", weights_only=False)
        if pack.get("cp_size", 1) > 1:
            raise SystemExit(f"{path} holds parts of sequences (context parallelism): join them first")
        columns = {name: listed(column) for name, column in pack["rollout_data"].items() if isinstance(column, list)}
        known = seen.setdefault(pack["rollout_id"], set())
        with (Path(out) / f"rollout_{pack['rollout_id']}.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines(columns, pack["rollout_id"], known))


if __name__ == "__main__":
    convert(*sys.argv[1:3])

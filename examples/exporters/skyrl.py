"""SkyRL: turn `dumped_data/*_training_input.pkl` (trainer.dump_data_batch=true) into JSONL for `rlaudit compare`.

rlaudit never loads a pickle: loading one runs whatever is in it. In SkyRL's environment, on files that you wrote:

    python skyrl.py EXPORT_PATH/dumped_data rlaudit_tokens

Then: rlaudit compare rlaudit_tokens --temperature 1.0
Any other pickle: load it where it was written, and write one such record per completion.
"""

import json
import pickle
import re
import sys
from pathlib import Path


def kept(values, mask):
    """The values where the mask is set."""
    return [value for value, real in zip(values, mask, strict=True) if real]


def lines(batch, uids, step):
    """One record per response. batch: sequences, attention_mask, response_mask, loss_mask, rollout_logprobs and
    action_log_probs as lists of rows; responses are the last columns of a sequence."""
    for row, sequence in enumerate(batch["sequences"]):
        real = batch["response_mask"][row]
        width = len(real)
        if not any(real):
            continue
        attended = batch["attention_mask"][row][:-width]
        yield {
            "prompt_id": str(uids[row]),
            "sample_id": f"step {step} row {row}",
            "prompt_token_ids": kept(sequence[:-width], attended),
            "token_id": kept(sequence[-width:], real),
            "rollout_logprob": kept(batch["rollout_logprobs"][row], real),
            "trainer_logprob": kept(batch["action_log_probs"][row], real),
            "loss_mask": kept(batch["loss_mask"][row], real),
            "trainer_version": step,
        }


def convert(folder, out):
    """Every pickle of a dump folder."""
    names = ("sequences", "attention_mask", "response_mask", "loss_mask", "rollout_logprobs", "action_log_probs")
    Path(out).mkdir(parents=True, exist_ok=True)
    for path in sorted(Path(folder).glob("*_training_input.pkl")):
        with path.open("rb") as file:
            batch = pickle.load(file)
        step = int(re.search(r"step_(\d+)", path.name)[1])
        rows = {name: batch[name].tolist() for name in names}
        uids = batch.metadata.get("uids") or range(len(rows["sequences"]))
        with (Path(out) / f"step_{step}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines(rows, uids, step))


if __name__ == "__main__":
    convert(*sys.argv[1:3])

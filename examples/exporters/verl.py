"""verl: write rollout and trainer logprobs of every step as JSONL that `rlaudit compare` reads.

In `verl/trainer/ppo/ray_trainer.py` (or your subclass of RayPPOTrainer), after `batch = batch.union(old_log_prob)`:

    from exporters.verl import export
    export(batch, self.global_steps, "rlaudit_tokens")

Needs `actor_rollout_ref.rollout.calculate_log_probs=True`: without it the engine's logprobs never leave the engine.
`old_log_probs` are the trainer's under the weights that sampled, so what compare sees is the engine and no staleness.
Then: rlaudit compare rlaudit_tokens --temperature 1.0
"""

import json
from pathlib import Path


def kept(values, mask):
    """The values where the mask is set."""
    return [value for value, real in zip(values, mask, strict=True) if real]


def lines(batch, uids, step):
    """One record per response. batch: prompts, responses, attention_mask, response_mask, rollout_log_probs,
    old_log_probs as lists of rows; uids: the prompt of each row."""
    width = len(batch["prompts"][0])
    for row, response in enumerate(batch["responses"]):
        attended = batch["attention_mask"][row]
        prompt = kept(batch["prompts"][row], attended[:width])
        length = sum(attended[width:])
        yield {
            "prompt_id": str(uids[row]),
            "sample_id": f"step {step} row {row}",
            "prompt_token_ids": prompt,
            "token_id": response[:length],
            "rollout_logprob": batch["rollout_log_probs"][row][:length],
            "trainer_logprob": batch["old_log_probs"][row][:length],
            "loss_mask": batch["response_mask"][row][:length],
            "rollout_version": step,
            "trainer_version": step,
        }


def export(batch, step, folder):
    """Write one step of a DataProto."""
    names = ("prompts", "responses", "attention_mask", "response_mask", "rollout_log_probs", "old_log_probs")
    rows = {name: batch.batch[name].float().tolist() if "log" in name else batch.batch[name].tolist() for name in names}
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / f"step_{step}.jsonl").open("w", encoding="utf-8") as file:
        for line in lines(rows, batch.non_tensor_batch["uid"], step):
            file.write(json.dumps(line) + "\n")

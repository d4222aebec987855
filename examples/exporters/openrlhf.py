"""OpenRLHF: write rollout and trainer logprobs of every experience as JSONL that `rlaudit compare` reads.

After the experience maker returns (trainer/ppo_trainer.py, `experiences = ...make_experience_batch(...)`):

    from exporters.openrlhf import export
    export(experiences, global_step, "rlaudit_tokens")

Needs `--algo.advantage.is_correction_enable` (before 0.10: `--enable_vllm_is_correction`): the engine returns logprobs,
and processed ones, only then. `action_log_probs` are the trainer's under the weights that sampled; column a of every
per-action field is about token a + 1 of `sequences`.
Then: rlaudit compare rlaudit_tokens --temperature 1.0
"""

import json
from pathlib import Path

FIELDS = ("sequences", "attention_mask", "action_mask", "rollout_log_probs", "action_log_probs")


def kept(values, mask):
    """The values where the mask is set."""
    return [value for value, real in zip(values, mask, strict=True) if real]


def lines(batch, prompts, step, number):
    """One record per row of an experience. batch: FIELDS as lists of rows; prompts: what tells prompts apart."""
    for row, sequence in enumerate(batch["sequences"]):
        actions = [place for place, real in enumerate(batch["action_mask"][row]) if real]
        if not actions:
            continue
        first, last = actions[0], actions[-1] + 1
        attended = batch["attention_mask"][row]
        prompt = kept(sequence[: first + 1], attended[: first + 1])
        yield {
            "prompt_id": str(prompts[row]) if prompts else " ".join(map(str, prompt)),
            "sample_id": f"step {step} experience {number} row {row}",
            "prompt_token_ids": prompt,
            "token_id": sequence[first + 1 : last + 1],
            "rollout_logprob": batch["rollout_log_probs"][row][first:last],
            "trainer_logprob": batch["action_log_probs"][row][first:last],
            "loss_mask": batch["action_mask"][row][first:last],
            "trainer_version": step,
        }


def export(experiences, step, folder):
    """Write the experiences of one step; those without rollout logprobs cannot be compared and are left out."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / f"step_{step}.jsonl").open("w", encoding="utf-8") as file:
        for number, experience in enumerate(experiences):
            if experience.rollout_log_probs is None:
                continue
            rows = {name: getattr(experience, name).tolist() for name in FIELDS}
            for line in lines(rows, experience.prompts, step, number):
                file.write(json.dumps(line) + "\n")

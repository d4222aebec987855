"""TRL: write rollout and trainer logprobs of every generation as JSONL that `rlaudit compare` reads.

    from trl import GRPOTrainer
    from exporters.trl import exporting

    trainer = exporting(GRPOTrainer, "rlaudit_tokens")(model=..., args=..., ...)

Needs `use_vllm=True` and the importance sampling correction (both sides are computed only then; TRL 0.22 and later).
`old_per_token_logps` are the trainer's under the weights that sampled.
Then: rlaudit compare rlaudit_tokens --temperature 1.0
"""

import json
from pathlib import Path

SIDES = ("sampling_per_token_logps", "old_per_token_logps")


def kept(values, mask):
    """The values where the mask is set."""
    return [value for value, real in zip(values, mask, strict=True) if real]


def lines(batch, step, rank):
    """One record per completion, from the lists of `_generate_and_score_completions`."""
    for row, ids in enumerate(batch["completion_ids"]):
        length = max((place + 1 for place, real in enumerate(batch["completion_mask"][row]) if real), default=0)
        prompt = kept(batch["prompt_ids"][row], batch["prompt_mask"][row])
        if not length:
            continue
        yield {
            "prompt_id": " ".join(map(str, prompt)),
            "sample_id": f"step {step} rank {rank} row {row}",
            "prompt_token_ids": prompt,
            "token_id": ids[:length],
            "rollout_logprob": batch["sampling_per_token_logps"][row][:length],
            "trainer_logprob": batch["old_per_token_logps"][row][:length],
            "loss_mask": batch["completion_mask"][row][:length],
            "advantage": batch["advantages"][row],
            "trainer_version": step,
        }


def exporting(trainer_class, folder):
    """The trainer class, writing what every generation gives."""

    class Exporting(trainer_class):
        def _generate_and_score_completions(self, inputs):
            output = super()._generate_and_score_completions(inputs)
            if all(output.get(name) is not None for name in SIDES):
                names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", *SIDES)
                rows = {name: output[name].tolist() for name in names}
                step, rank = self.state.global_step, self.accelerator.process_index
                Path(folder).mkdir(parents=True, exist_ok=True)
                with (Path(folder) / f"rank_{rank}.jsonl").open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(line) + "\n" for line in lines(rows, step, rank))
            return output

    return Exporting

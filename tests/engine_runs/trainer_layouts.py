"""Logprobs of the same completions in every layout of a trainer's. Runs in an interpreter that has torch.

trainer_layouts.py COMPLETIONS [everything | found | shared]

COMPLETIONS: JSON, [[prompt, completion]]. Prints [result, gradient] of each call. `found`: what other processes have
sampled is looked for from the first call on; `shared`: it was sampled in this one.
"""

import json
import sys
from pathlib import Path

import torch

VOCABULARY, PAD = 97, 0


def aligned(logits, labels):
    """Return the logprobs of labels, which are shifted already and may be masked."""
    return torch.log_softmax(logits, -1).gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)


def shifted(logits, target, mask):
    """Return the logprobs of all ids but the first. Whole numbers behind the ids are none of its ids."""
    return aligned(logits[:, :-1], target[:, 1:])


def last(model, ids, keep):
    """Return the logprobs of the last ids."""
    return aligned(model(ids)[:, -keep - 1 : -1], ids[:, -keep:])


def padded(rows, left):
    width = max(map(len, rows))
    return torch.tensor([[PAD] * (width - len(r)) + r if left else r + [PAD] * (width - len(r)) for r in rows])


def calls(loss, model, sequences):
    """Yield the result of each call."""
    prompts, completions = zip(*sequences, strict=True)
    rows = torch.cat([padded(prompts, True), padded(completions, False)], 1)
    packed = torch.tensor([[token for prompt, ids in sequences for token in prompt + ids]])
    masked = torch.tensor([[n for prompt, ids in sequences for n in [-100] * len(prompt) + ids]])
    width = max(map(len, completions))
    yield loss.last(model, rows, width)
    yield loss.shifted(model(rows), rows, (rows != PAD).long())
    yield loss.aligned(model(rows), rows.roll(-1, 1).int().long())
    yield loss.aligned(model(packed), packed.roll(-1, 1))
    yield loss.aligned(model(packed).squeeze(0), packed.roll(-1, 1).squeeze(0))
    yield loss.aligned(model(packed), masked.roll(-1, 1))
    yield loss.aligned(model(rows)[:, -width - 1 : -1], rows[:, -width:])


def main():
    import trainer_layouts as loss  # as a module: its functions are looked for by this name

    sequences = json.loads(Path(sys.argv[1]).read_text())
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, 8), torch.nn.Linear(8, VOCABULARY))
    if len(sys.argv) > 2:
        import rlaudit_completions
        import rlaudit_recorder as recorder

        if sys.argv[2] == "found":
            recorder.KEPT_BYTES = 1 << 20
            recorder._begin_file(recorder._process)
            recorder._process.bytes = 1 << 20
        elif sys.argv[2] == "shared":
            recorder._process.totals["requests"] = len(sequences)
            for prompt, ids in sequences:
                rlaudit_completions.remember(recorder._process, prompt, ids)
    for result in calls(loss, model, sequences):
        model.zero_grad()
        result.sum().backward()
        print(json.dumps([result.tolist(), [p.grad.flatten().tolist() for p in model.parameters()]]))


if __name__ == "__main__":
    main()

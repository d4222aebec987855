"""One gradient step by our loop and by TRL's loss, on one batch and one model; prints how far they are apart as JSON.

usage: PYTHON_OF_A_TRAINER trl_loss.py TRAIN_PY GRPO_TRAINER_PY

Of TRL only the method that computes the loss is taken, out of its source, with a stand-in for its trainer.
"""

import ast
import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import torch
from transformers import LlamaConfig, LlamaForCausalLM

TEMPERATURE, CLIP, LIMIT = 0.7, (0.05, 0.1), 1.1
# Ours, TRL's importance_sampling_level and loss_type, and whether the rollout's logprobs are corrected for.
CASES = [
    ("gspo", None, "sequence", "grpo"),
    ("grpo", None, "token", "grpo"),
    ("ppo", None, "token", "bnpo"),
    ("grpo", "tis", "token", "grpo"),
    ("ppo", "tis", "token", "bnpo"),
]


def loaded(path):
    spec = importlib.util.spec_from_file_location("train", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def their_method(path):
    """GRPOTrainer._compute_loss as a function."""
    tree = ast.parse(Path(path).read_text())
    trainer = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "GRPOTrainer")
    method = next(node for node in trainer.body if getattr(node, "name", "") == "_compute_loss")
    known = {"torch": torch, "nanmin": torch.min, "nanmax": torch.max}
    exec(compile(ast.Module([method], []), str(path), "exec"), known)
    return known["_compute_loss"]


def their_trainer(model, level, loss_type, corrected):
    def logprobs(model, input_ids, attention_mask, kept, **_):
        logits = model(input_ids, attention_mask=attention_mask).logits[:, -kept - 1 : -1] / TEMPERATURE
        found = logits.log_softmax(-1)
        entropies = -(found.exp() * found).sum(-1)
        return torch.gather(found, 2, input_ids[:, -kept:, None])[:, :, 0], entropies.detach()

    return SimpleNamespace(
        _get_per_token_logps_and_entropies=logprobs, top_entropy_quantile=1.0, beta=0.0,
        importance_sampling_level=level, loss_type=loss_type, epsilon_low=CLIP[0], epsilon_high=CLIP[1],
        args=SimpleNamespace(delta=None), use_vllm=corrected, vllm_importance_sampling_correction=corrected,
        current_gradient_accumulation_steps=1, model=model, accelerator=SimpleNamespace(gather=lambda x: x),
        _metrics=defaultdict(lambda: defaultdict(list)),
    )  # fmt: skip


def main(train_path, trl_path):
    train, theirs = loaded(train_path), their_method(trl_path)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2)
    )
    prompts = [[1, 2, 3, 4]] * 6
    lengths = [5, 3, 4, 5, 2, 1]
    samples = [{"token_ids": torch.randint(0, 64, (length,)).tolist(), "versions": [0] * length} for length in lengths]
    advantages = torch.randn(6)
    prompt_ids = torch.tensor(prompts)
    completions = train.padded([sample["token_ids"] for sample in samples])
    mask = (torch.arange(5)[None, :] < torch.tensor(lengths)[:, None]).float()
    policy = object.__new__(train.Policy)
    policy.model, policy.weights = model, dict(model.named_parameters())
    policy.dtype = policy.head_dtype = torch.float32
    policy.head = "lm_head.weight"
    with torch.no_grad():
        ids = torch.cat([prompt_ids, completions], 1)
        now = (model(ids).logits[:, 3:-1] / TEMPERATURE).log_softmax(-1)
        now = torch.gather(now, 2, completions[:, :, None])[:, :, 0]
    rollout = now + 0.1 * torch.randn(6, 5)
    for sample, row, length in zip(samples, rollout.tolist(), lengths, strict=True):
        sample["logprobs"] = row[:length]
    batch = train.Batch(prompts, samples)
    found = []
    for name, correction, level, loss_type in CASES:
        model.zero_grad()
        new = batch.of_tokens((policy.logits(batch) / TEMPERATURE).log_softmax(-1))
        log_ratio, weights = new - batch.rollout_ST, mask
        if correction:
            log_ratio = new - new.detach()
            shipped = train.neighbour("corrections/" + correction)
            weights = shipped.weights(new.detach() - batch.rollout_ST, mask, LIMIT)
        ours, _ = train.neighbour("objectives/" + name).loss(log_ratio, advantages, mask, CLIP, weights)
        ours.backward()
        gradients = {key: weight.grad.clone() for key, weight in model.named_parameters()}
        model.zero_grad()
        inputs = {
            "prompt_ids": prompt_ids, "prompt_mask": torch.ones_like(prompt_ids), "completion_ids": completions,
            "completion_mask": mask, "advantages": advantages,
            "old_per_token_logps": None if correction else rollout,
            "importance_sampling_ratio": torch.exp(now - rollout).clamp(max=LIMIT),
        }  # fmt: skip
        loss = theirs(their_trainer(model, level, loss_type, bool(correction)), model, inputs)
        loss.backward()
        size = max(float(weight.grad.abs().max()) for weight in model.parameters())
        apart = max(float((gradients[key] - weight.grad).abs().max()) for key, weight in model.named_parameters())
        found.append(
            {"case": f"{name} {correction or ''}".strip(), "ours": ours.item(), "theirs": loss.item(),
             "gradient": size, "apart": apart}
        )  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

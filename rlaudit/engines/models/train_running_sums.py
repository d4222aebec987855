"""Trains the canary's own model: a Llama of 0.36 million weights that learns running digit sums in a minute.

A worker script (see engines/cells/worker.py) for the trainer's interpreter: torch, transformers, safetensors, no
rlaudit. Python 3.9 syntax. Six digits are given; the answer is their running sums modulo ten. Training stops as soon
as most digits are right, so that reinforcement learning has something left to learn.

job
  output    folder for config.json, model.safetensors and generation_config.json
  steps     of training at most; enough: stop at this share of right digits; seed: of the weights and of the digits

The configuration is written by hand, for old and new readers at once: each transformers writes one that its
predecessors misread. There is no tokenizer: prompts are token ids, and engines start with skip_tokenizer_init.
"""

import json
import math
import os

import torch
from torch.nn import functional

DIGITS, BEGIN, ANSWER, END, VOCABULARY = 6, 10, 11, 12, 128
# Solved examples before every prompt: 28 tokens that all prompts share, more than one block of a prefix cache of 16
# (vllm/resolution/block_size.py).
SHOWN = ([3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8])
BATCH = 64
LEARNING_RATE = 3e-3
WARM_UP = 50
# Batches over which the share of right digits is taken: 1,920 digits.
LATEST = 5
CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 128,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "bos_token_id": BEGIN,
    "eos_token_id": END,
    "pad_token_id": END,
    "torch_dtype": "float32",
    "dtype": "float32",
}


def run(job, channel):
    """Train and save the model."""
    from safetensors.torch import save_file
    from transformers import LlamaConfig, LlamaForCausalLM

    channel.phase("train")
    # The order of sums, and with it the weights, depend on the number of threads.
    torch.set_num_threads(1)
    torch.manual_seed(job["seed"])
    generator = torch.Generator().manual_seed(job["seed"])
    model = LlamaForCausalLM(LlamaConfig(**CONFIGURATION)).float()
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.95))
    right = []
    for step in range(job["steps"]):
        for group in optimizer.param_groups:
            warm, cool = min(1.0, (step + 1) / WARM_UP), 0.5 + 0.5 * math.cos(math.pi * step / job["steps"])
            group["lr"] = LEARNING_RATE * warm * cool
        prompts, answers = problems(BATCH, generator)
        logits = model(torch.cat([prompts, answers], 1)[:, :-1]).logits[:, prompts.shape[1] - 1 :]
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), answers.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        right.append(float((logits.argmax(-1) == answers).float().mean()))
        channel.emit("progress", done=step + 1, total=job["steps"])
        if sum(right[-LATEST:]) / LATEST >= job["enough"]:
            break
    os.makedirs(job["output"], exist_ok=True)
    weights = {name: weight.detach().contiguous() for name, weight in model.named_parameters()}
    save_file(weights, os.path.join(job["output"], "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(job["output"], "config.json"), "w", encoding="utf-8") as document:
        json.dump(CONFIGURATION, document, indent=1)
    return {}


def problems(count, generator):
    """Return prompts (count, 36) and answers (count, 6) as token ids."""
    digits = torch.randint(0, 10, (count, DIGITS), generator=generator)
    shown = torch.tensor([token for example in SHOWN for token in problem(example)])
    begin, ask = torch.full((count, 1), BEGIN), torch.full((count, 1), ANSWER)
    return torch.cat([shown.expand(count, -1), begin, digits, ask], 1), digits.cumsum(1) % 10


def problem(digits):
    """Return one solved problem as token ids."""
    return [BEGIN, *digits, ANSWER, *(sum(digits[: place + 1]) % 10 for place in range(len(digits)))]

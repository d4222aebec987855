"""TRL: stop a training, or say so, when a logged metric has left its gate for good.

The test of `rlaudit curves LOG --gate ...` after every step, inside the trainer. Metrics are named as the trainer
logs them. The same callback is for transformers' Trainer.
"""

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from rlaudit.callbacks import GateCallback


def reward(completions, **_):
    return [sum(sign.isdigit() for sign in text) / max(1, len(text)) for text in completions]


GRPOTrainer(
    model="HuggingFaceTB/SmolLM2-135M-Instruct",
    reward_funcs=reward,
    args=GRPOConfig(output_dir="out", use_vllm=True, vllm_mode="colocate", logging_steps=1),
    train_dataset=Dataset.from_list([{"prompt": f"What is {a} + {b}?"} for a in range(8) for b in range(8)]),
    callbacks=[GateCallback("sampling/sampling_logp_difference/mean<0.02")],
).train()

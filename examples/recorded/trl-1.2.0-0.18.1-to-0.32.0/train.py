"""GRPO with TRL 1.2.0 and vLLM 0.18.1 in the same process, on a CPU. Nothing of rlaudit is in it.

python train.py CHECKPOINT
"""

import functools
import sys

import trl.generation.vllm_generation as generation
import vllm._custom_ops
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

# For the CPU build alone: its linear weights are packed, and cannot be loaded into again, unless oneDNN is off. TRL
# names no dtype, so that the engine would be in the checkpoint's and not in the trainer's.
vllm._custom_ops._supports_onednn = False
generation.LLM = functools.partial(generation.LLM, dtype="float32")


def reward(completions, **_):
    return [sum(sign.isdigit() for sign in text) / max(1, len(text)) for text in completions]


arguments = GRPOConfig(
    output_dir="out",
    use_vllm=True,
    vllm_mode="colocate",
    vllm_gpu_memory_utilization=0.3,
    per_device_train_batch_size=16,
    num_generations=4,
    max_completion_length=24,
    max_steps=8,
    learning_rate=1e-5,
    temperature=0.7,
    logging_steps=1,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    bf16=False,
    seed=0,
)
questions = [f"What is {a} + {b}? Answer with a number." for a in range(8) for b in range(8)]
GRPOTrainer(
    model=sys.argv[1],
    reward_funcs=reward,
    args=arguments,
    train_dataset=Dataset.from_list([{"prompt": question} for question in questions]),
).train()

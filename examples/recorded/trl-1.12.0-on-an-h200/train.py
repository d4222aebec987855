"""GRPO with TRL 1.12.0 and vLLM 0.26.0 in the same process, on one GPU. Nothing of rlaudit is in it.

python train.py CHECKPOINT STEPS. TRL as it comes: bfloat16, processed logprobs, weights loaded after each step.
"""

import sys
import time

from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer


class Clock(TrainerCallback):
    def on_step_begin(self, *given, **named):
        self.began = time.perf_counter()

    def on_step_end(self, args, state, control, **named):
        print(f"step {state.global_step}: {time.perf_counter() - self.began:.3f} s", flush=True)


def reward(completions, **_):
    return [sum(sign.isdigit() for sign in text) / max(1, len(text)) for text in completions]


arguments = GRPOConfig(
    output_dir="out",
    use_vllm=True,
    vllm_mode="colocate",
    vllm_gpu_memory_utilization=0.2,
    per_device_train_batch_size=64,
    num_generations=8,
    max_completion_length=128,
    max_steps=int(sys.argv[2]),
    learning_rate=1e-5,
    temperature=0.7,
    logging_steps=1,
    save_strategy="no",
    report_to=[],
    seed=0,
)
questions = [f"What is {a} + {b}? Answer with a number." for a in range(8) for b in range(8)]
GRPOTrainer(
    model=sys.argv[1],
    reward_funcs=reward,
    args=arguments,
    callbacks=[Clock()],
    train_dataset=Dataset.from_list([{"prompt": question} for question in questions]),
).train()

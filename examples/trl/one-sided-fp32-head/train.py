"""The trainer's head is cast to float32, the engine in the same process keeps bfloat16: worse than neither."""

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer


def reward(completions, **kwargs):
    return [float(len(set(text.split()))) for text in completions]


arguments = GRPOConfig(
    output_dir="runs/head",
    bf16=True,
    cast_lm_head_to_fp32=True,
    use_vllm=True,
    vllm_mode="colocate",
    vllm_gpu_memory_utilization=0.3,
    vllm_importance_sampling_correction=True,
    temperature=1.0,
    num_generations=8,
)
trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-0.5B-Instruct",
    args=arguments,
    reward_funcs=reward,
    train_dataset=load_dataset("trl-lib/tldr", split="train"),
)
trainer.train()

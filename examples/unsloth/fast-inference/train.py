"""Fast inference starts vLLM inside the trainer; the sampling filter is the trainer's blind spot."""

from trl import GRPOConfig, GRPOTrainer
from unsloth import FastLanguageModel
from vllm import SamplingParams

model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="unsloth/Qwen3-4B-Base",
    max_seq_length=2048,
    load_in_4bit=False,
    fast_inference=True,
    max_lora_rank=32,
    gpu_memory_utilization=0.7,
)
model = FastLanguageModel.get_peft_model(model, r=32, lora_alpha=64)

sampling = SamplingParams(min_p=0.1, top_p=1.0, top_k=-1, seed=3407)
arguments = GRPOConfig(
    vllm_sampling_params=sampling,
    temperature=1.0,
    num_generations=4,
    max_completion_length=1024,
)
trainer = GRPOTrainer(model=model, processing_class=tokenizer, args=arguments, reward_funcs=[], train_dataset=None)
trainer.train()

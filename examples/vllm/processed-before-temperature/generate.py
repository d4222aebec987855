"""The mode's name is right, and its meaning is not: up to 0.10.1 `processed` stops before the temperature."""

from vllm import LLM, SamplingParams

engine = LLM(
    model="Qwen/Qwen2.5-0.5B-Instruct",
    dtype="bfloat16",
    seed=1,
    logprobs_mode="processed_logprobs",
    max_model_len=2048,
)
sampling = SamplingParams(temperature=0.6, logprobs=1, max_tokens=256)
print(engine.generate(["2 + 2 ="], sampling))

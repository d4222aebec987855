from ray import serve
from ray.serve.llm import LLMConfig, build_openai_app

policy = LLMConfig(
    model_loading_config=dict(model_id="policy", model_source="Qwen/Qwen2.5-7B-Instruct"),
    engine_kwargs=dict(
        tensor_parallel_size=2,
        enable_prefix_caching=False,
        logprobs_mode="processed_logprobs",
        generation_config="vllm",
    ),
)
serve.run(build_openai_app({"llm_configs": [policy]}))

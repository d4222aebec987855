import agentlightning as agl

CONFIG = {
    "data": {"max_prompt_length": 4096, "max_response_length": 2048},
    "algorithm": {"adv_estimator": "grpo"},
    "actor_rollout_ref": {
        "rollout": {
            "name": "vllm",
            "mode": "async",
            "tensor_model_parallel_size": 1,
            "temperature": 0.7,
            "engine_kwargs": {"vllm": {"enable_auto_tool_choice": True, "tool_call_parser": "hermes"}},
        },
        "model": {"path": "Qwen/Qwen2.5-1.5B-Instruct"},
    },
    "trainer": {"n_gpus_per_node": 1, "nnodes": 1},
}

agl.Trainer(algorithm=agl.VERL(CONFIG), n_runners=10)

#!/usr/bin/env bash
# SkyRL sets engine_init_kwargs on an object one by one: a misspelt name is accepted and read by nobody.
uv run --extra vllm -m skyrl.train.entrypoints.main_base \
  trainer.policy.model.path=Qwen/Qwen2.5-1.5B-Instruct \
  trainer.placement.colocate_all=true \
  trainer.algorithm.off_policy_correction.tis_ratio_type=token \
  generator.n_samples_per_prompt=5 \
  generator.inference_engine.backend=vllm \
  generator.inference_engine.num_engines=4 \
  generator.inference_engine.tensor_parallel_size=1 \
  generator.sampling_params.temperature=0.9 \
  generator.sampling_params.logprobs=1 \
  generator.inference_engine.engine_init_kwargs.logprob_mode=processed_logprobs

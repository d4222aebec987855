"""A verl rollout as YAML, the same with the in-process engine, and as overrides of a script."""

YAML = """\
trainer:
  nnodes: 2
  n_gpus_per_node: 4
data:
  max_response_length: 256
actor_rollout_ref:
  model:
    path: org/policy
  actor:
    fsdp_config:
      dtype: bfloat16
  rollout:
    name: vllm
    mode: async
    temperature: 0.7
    tensor_model_parallel_size: 2
    enable_prefix_caching: false
    enforce_eager: false
    calculate_log_probs: true
    engine_kwargs:
      vllm:
        max_logprobs: 5
"""

SYNC = YAML.replace("mode: async", "mode: sync")

SCRIPT = r"""#!/bin/bash
TP=2
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.temperature=0.7 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=$TP \
    actor_rollout_ref.rollout.enable_prefix_caching=False \
    +actor_rollout_ref.rollout.engine_kwargs.vllm.max_logprobs=5 \
    trainer.nnodes=1 trainer.n_gpus_per_node=8
"""


def in_script(*overrides: str) -> str:
    """The script with more overrides."""
    return SCRIPT.replace(
        "    trainer.nnodes=1", "".join(f"    {one} \\\n" for one in overrides) + "    trainer.nnodes=1"
    )

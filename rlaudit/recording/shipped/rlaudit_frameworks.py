"""In which function each framework makes the logprobs of its loss, and which of its methods ask for which of them.

A function takes token ids and returns their logprobs: of the last ids, as many as there are logprobs. Where it was read
is the oldest and the newest release that was read, or commit, each with the line of the definition; in between it stood
in all that were read. A release that has moved one is not recorded, which `rlaudit record` says at its end.
Standard library and Python 3.9.
"""

# `module:function` or `module:Class.method`, the argument with the ids (a number: its place), and where it was read.
FUNCTIONS = {
    "trl.trainer.grpo_trainer:GRPOTrainer._get_per_token_logps_and_entropies": (
        "input_ids",
        "TRL 0.20.0:1071 to 1.16.0:1419",
    ),
    "trl.trainer.rloo_trainer:RLOOTrainer._get_per_token_logps_and_entropies": (
        "input_ids",
        "TRL 0.22.2:724 to 1.16.0:988",
    ),
    "trl.trainer.grpo_trainer:GRPOTrainer._get_per_token_logps": ("input_ids", "TRL 0.17.0:814 to 0.19.1:857"),
    "trl.trainer.utils:selective_log_softmax": (
        "index",
        "TRL 0.17.0:1669 to 1.16.0:538, for ms-swift 3.5.3 and its sequence parallelism",
    ),
    "verl.utils.torch_functional:logprobs_from_logits": ("labels", "verl 0.4.1:64 to 0.9.1:73"),
    "verl.utils.experimental.torch_functional:FusedLinearForPPO.forward": ("input_ids", "verl 0.4.1:197 to 0.9.1:229"),
    "verl.utils.kernel.linear_cross_entropy:linear_cross_entropy": (2, "verl 0.4.1:94 to 0.9.1:119"),
    "verl.utils.megatron.tensor_parallel:vocab_parallel_log_probs_from_logits": (
        "labels",
        "verl 0.4.1:154 to 0.9.1:201",
    ),
    "openrlhf.models.utils:log_probs_from_logits": ("labels", "OpenRLHF 0.8.5:84 to 0.11.2:172"),
    "skyrl.backends.skyrl_train.utils.torch_utils:logprobs_from_logits": ("labels", "SkyRL 0.1.0:115 to 0.3.0:115"),
    "skyrl.backends.skyrl_train.distributed.megatron.model_utils:from_parallel_logits_to_logprobs": (
        "target",
        "SkyRL 0.1.0:250 to 0.3.0:481",
    ),
    "skyrl.backends.skyrl_train.distributed.megatron.model_utils:from_parallel_hidden_to_logprobs": (
        "target",
        "SkyRL 0.3.0:707",
    ),
    "skyrl_train.utils.torch_utils:logprobs_from_logits": ("labels", "skyrl-train v0.1.0:88 to v0.4.0:115"),
    "skyrl_train.distributed.megatron.model_utils:from_parallel_logits_to_logprobs": (
        "target",
        "skyrl-train v0.2.0:250 to v0.4.0:250",
    ),
    "nemo_rl.distributed.model_utils:get_next_token_logprobs_from_logits": (
        "input_ids",
        "NeMo-RL v0.6.0:1350 to 7ea279a:1611",
    ),
    "nemo_rl.distributed.model_utils:from_parallel_logits_to_logprobs": ("target", "NeMo-RL v0.2.1:120 to 7ea279a:947"),
    "nemo_rl.distributed.model_utils:dtensor_from_parallel_logits_to_logprobs": (
        "target",
        "NeMo-RL v0.3.1:144 to 7ea279a:839",
    ),
    "nemo_rl.models.automodel.train:LogprobsPostProcessor._compute_local_logprobs": (
        "input_ids",
        "NeMo-RL v0.6.0:735 to 7ea279a:800",
    ),
    "prime_rl.trainer.rl.loss:selective_log_softmax": ("index", "prime-rl v0.2:13 to 559b447:50"),
    "prime_rl.trainer.models.layers.lm_head:FusedOutputLinear.forward": ("labels", "prime-rl v0.3.0:39 to 559b447:42"),
    "swift.rlhf_trainers.grpo_trainer:GRPOTrainer._get_logps_via_local_forward": ("input_ids", "ms-swift 4.6.0:1564"),
    "swift.trainers.rlhf_trainer.grpo_trainer:GRPOTrainer._get_logps_via_local_forward": (
        "input_ids",
        "ms-swift 3.12.6:1600",
    ),
    "swift.megatron.trainers.vocab_parallel_utils:compute_logps_and_entropy_from_logits": (
        "labels",
        "ms-swift 3.12.6:197 to 4.6.0:204",
    ),
    "open_instruct.grpo_utils:forward_for_logprobs": ("query_responses", "open-instruct v0.2.0:278 to e6c3044:541"),
    "open_instruct.model_utils:log_softmax_and_gather": ("index", "open-instruct v0.1.0:538 to e6c3044:588"),
    "areal.utils.functional.vocab_parallel:gather_logprobs": ("labels", "AReaL v0.5.0:399 to 1.0.4:401"),
    "areal.utils.functional.vocab_parallel:gather_logprobs_entropy": ("labels", "AReaL v0.5.0:432 to 1.0.4:434"),
    "areal.utils.functional:gather_logprobs": ("labels", "AReaL v0.4.1:43"),
    "areal.utils.functional:gather_logprobs_entropy": ("labels", "AReaL v0.4.1:84"),
    "roll.distributed.strategy.strategy:InferenceStrategy.op_compute_log_probs": (
        "input_ids",
        "ROLL v0.1.0:125 to 8eb27cc:158",
    ),
    "roll.distributed.strategy.deepspeed_strategy:DeepSpeedInferStrategy.op_compute_log_probs": (
        "input_ids",
        "ROLL v0.1.0:280 to v0.2.1:285",
    ),
    "roll.distributed.strategy.fsdp2_strategy:FSDP2InferStrategy.op_compute_log_probs": (
        "input_ids",
        "ROLL v0.2.1:995 to 8eb27cc:1304",
    ),
    "roll.distributed.strategy.megatron_strategy:MegatronInferStrategy.op_compute_log_probs": (
        "input_ids",
        "ROLL v0.1.0:218 to 8eb27cc:673",
    ),
}

# What the result is in, if it is a dict.
LOGPROBS = ("logps", "logprobs", "log_probs")

# What a call without gradients was for, if a method of the framework is below it on the stack: by package and method.
# One of the reference may call one of the policy. With a class: from Python 3.11 on.
ASKED_FOR = {
    ("verl", "compute_ref_log_prob"): "reference",
    ("verl", "compute_log_prob"): "old",
    ("nemo_rl", "get_reference_policy_logprobs"): "reference",
    ("nemo_rl", "get_logprobs"): "old",
    ("openrlhf", "ReferenceModelActor.forward"): "reference",
    ("openrlhf", "PolicyModelActor.forward"): "old",
    ("skyrl", "RefWorkerBase._forward_micro_batch"): "reference",
    ("skyrl", "MegatronRefWorkerBase.forward"): "reference",
    ("skyrl", "PolicyWorkerBase._forward_micro_batch"): "old",
    ("skyrl", "MegatronPolicyWorkerBase.forward"): "old",
    ("skyrl_train", "RefWorkerBase._forward_micro_batch"): "reference",
    ("skyrl_train", "PolicyWorkerBase._forward_micro_batch"): "old",
}

# A module that is imported, with others, where a framework runs, and that no other program has.
MODULES = {
    "trl.trainer": "TRL",
    "verl": "verl",
    "openrlhf": "OpenRLHF",
    "skyrl": "SkyRL",
    "skyrl_train": "SkyRL",
    "nemo_rl": "NeMo-RL",
    "prime_rl.inference.patches": "prime-rl",
    "prime_rl.trainer.rl.loss": "prime-rl",
    "swift.trainers": "ms-swift",
    "open_instruct": "open-instruct",
    "areal": "AReaL",
    "roll.distributed": "ROLL",
    "pipelinerl.vllm1": "PipelineRL",
    "pipelinerl.finetune.rl": "PipelineRL",
}

# What is not read off, and why. `rlaudit explain recording` prints it.
NOT_READ = (
    "PipelineRL (58d3934): its logprobs are a local variable of rl_step, finetune/rl/__init__.py:212",
    "verl with Megatron to 0.7.1: its labels have no prompt, so that nothing says where a completion begins",
    "NeMo-RL v0.2.1 to v0.5.0 without tensor parallelism, and its fused linear layer: made inside other functions",
    "packed sequences under Megatron in NeMo-RL and SkyRL (..._packed_sequences): rows are not those of the ids",
    "losses fused into a kernel that returns no logprobs: Liger in TRL and ms-swift",
    "AReaL's tree training, where sequences share their beginnings",
    "completions that a rank of sequence or context parallelism holds only in part",
)

"""Names for what is not a mismatch itself: corrections, the objective, the policy, rewards, lengths."""

from rlaudit.curves.logged_metric import Clip, Group, LoggedMetric, Weights

HF = "TRL, ms-swift, unsloth"
VERL = "verl, rLLM"
AFTER, COUNTS, BEFORE, NONE = Clip.AFTER, Clip.COUNTS, Clip.BEFORE, Clip.NONE

WEIGHT, ESS, SHARE = "mean_weight", "effective_sample_size", "share_corrected"
CORRECTIONS: tuple[tuple[str, str, str, str, Clip], ...] = (
    # trl#5231: what is logged is what the loss uses, so a tail that was cut off does not show.
    (r"(train/)?sampling/importance_sampling_ratio/mean", "TRL, unsloth", WEIGHT, "by the mode's level", AFTER),
    (r"rollout_corr/rollout_is_mean", VERL, WEIGHT, "truncated in token mode", AFTER),
    (r"(train/)?rollout_correction/is_weight_mean", "ms-swift", WEIGHT, "by the mode's level", AFTER),
    (r"(policy/)?is_ratio_mean", "SkyRL", WEIGHT, "with 0 where masked", AFTER),
    (r"rollout_corr/rollout_is_eff_sample_size", VERL, ESS, "on weights clamped to [1/C, C]", AFTER),
    (r"(train/)?rollout_correction/ess", "ms-swift", ESS, "1 / mean (w / mean w)^2", AFTER),
    (r"(train/)?importance_sampling_ess", "unsloth", ESS, "of the weights used", AFTER),
    (r"rollout_corr/rollout_is_ratio_fraction_high", VERL, SHARE, "share of weights above C", COUNTS),
    (r"rollout_corr/rollout_is_ratio_fraction_low", VERL, SHARE, "share of weights below 1/C", COUNTS),
    (r"(train/)?rollout_correction/clipped_frac", "ms-swift", SHARE, "share truncated or masked", COUNTS),
    (r"actor/is_weight_clipfrac(@sum)?", "ROLL", SHARE, "share of weights clipped", COUNTS),
    (r"(train/)?is_oob_ratio", "NeMo-RL", SHARE, "share of weights out of bounds", COUNTS),
    (r"is_masked/(all/)?mean", "prime-rl", SHARE, "share of tokens masked", COUNTS),
    (r"(train/)?importance_sampling_rejected_frac", "unsloth", SHARE, "share of tokens rejected", COUNTS),
)

CLIPPED = "share of tokens clipped, current against old policy"
GRADIENT = "norm of the gradient"
KL_REFERENCE = "of the policy against the reference model"
TOKENS, SEQUENCES = "mean over tokens", "mean over sequences"
LENGTH = "mean over sequences, in tokens"
TRAINING: tuple[tuple[str, str, str, Group, str, Clip], ...] = (
    (r"rl/reward", "PipelineRL", "reward", Group.REWARD, SEQUENCES, NONE),
    (r"critic/rewards/mean", "verl, ROLL", "reward", Group.REWARD, SEQUENCES + ", KL penalty included", NONE),
    (r"critic/score/mean", "verl, ROLL", "reward", Group.REWARD, SEQUENCES, NONE),
    (r"val-core/.+", "verl", "validation_score", Group.REWARD, "validation", NONE),
    (r"(train/)?reward", HF + ", OpenRLHF, NeMo-RL", "reward", Group.REWARD, SEQUENCES, NONE),
    (r"(train/)?rewards/[^/]+(/mean)?", HF, "reward_function", Group.REWARD, SEQUENCES, NONE),
    (r"eval[_/]reward", HF, "validation_score", Group.REWARD, "validation", NONE),
    (r"reward/avg_raw_reward", "SkyRL", "reward", Group.REWARD, SEQUENCES, NONE),
    (r"reward/(all/)?mean", "prime-rl", "reward", Group.REWARD, SEQUENCES, NONE),
    (r"(val/|validation/)?accuracy", "NeMo-RL", "validation_score", Group.REWARD, "validation", NONE),
    (r"(.*/)?task_reward(/avg)?", "AReaL", "reward", Group.REWARD, SEQUENCES, NONE),
    (r"objective/scores|scores", "open-instruct, TRL", "reward", Group.REWARD, SEQUENCES, NONE),
    (r"rl/entropy", "PipelineRL", "entropy", Group.POLICY, "mean over sequences of the mean over tokens", NONE),
    (r"actor/entropy(_loss)?", "verl, ROLL", "entropy", Group.POLICY, TOKENS, NONE),
    (r"(train/)?entropy(/mean)?", HF, "entropy", Group.POLICY, TOKENS, NONE),
    (r"entropy/(all/)?mean", "prime-rl", "entropy", Group.POLICY, TOKENS, NONE),
    (r"policy/policy_entropy", "SkyRL", "entropy", Group.POLICY, TOKENS, NONE),
    (r"policy/entropy_avg", "open-instruct, TRL", "entropy", Group.POLICY, TOKENS, NONE),
    (r"(.*/)?ppo_actor/update/entropy(/avg)?", "AReaL", "entropy", Group.POLICY, TOKENS, NONE),
    (r"(train/)?approx_entropy", "NeMo-RL", "entropy", Group.POLICY, "minus the mean logprob of sampled tokens", NONE),
    (r"rl/kl", "PipelineRL", "kl_to_reference_model", Group.POLICY, "k3, mean over sequences, ratio clamped", NONE),
    (r"actor/kl_loss", "verl, ROLL", "kl_to_reference_model", Group.POLICY, "by kl_loss_type", NONE),
    (r"(train/)?kl", HF + ", OpenRLHF", "kl_to_reference_model", Group.POLICY, KL_REFERENCE, NONE),
    (r"policy/policy_kl", "SkyRL", "kl_to_reference_model", Group.POLICY, KL_REFERENCE, NONE),
    (r"objective/kl(\d?_avg)?", "open-instruct, TRL", "kl_to_reference_model", Group.POLICY, KL_REFERENCE, NONE),
    (r"actor/ppo_kl", "verl, ROLL", "kl_of_the_update", Group.OBJECTIVE, "mean over tokens of old - current", BEFORE),
    (r"policy/approxkl_avg", "open-instruct, TRL", "kl_of_the_update", Group.OBJECTIVE, "k2, current and old", BEFORE),
    (r"actor/pg_clipfrac", "verl, ROLL", "clip_fraction", Group.OBJECTIVE, CLIPPED, COUNTS),
    (r"(train/)?clip_ratio(/region_mean)?", HF, "clip_fraction", Group.OBJECTIVE, CLIPPED, COUNTS),
    (r"(train/|policy/)?ppo_clip_ratio", "SkyRL, OpenRLHF", "clip_fraction", Group.OBJECTIVE, CLIPPED, COUNTS),
    (r"policy/clipfrac_avg", "open-instruct, TRL", "clip_fraction", Group.OBJECTIVE, CLIPPED, COUNTS),
    (r"stats/grad_norm", "PipelineRL", "gradient_norm", Group.OBJECTIVE, GRADIENT, NONE),
    (r"actor/grad_norm", "verl, ROLL", "gradient_norm", Group.OBJECTIVE, GRADIENT, NONE),
    (r"(train/)?grad_norm", HF + ", NeMo-RL", "gradient_norm", Group.OBJECTIVE, GRADIENT, NONE),
    (r"optim/grad_norm", "prime-rl", "gradient_norm", Group.OBJECTIVE, GRADIENT, NONE),
    (r"policy/(raw_)?grad_norm", "SkyRL", "gradient_norm", Group.OBJECTIVE, GRADIENT, NONE),
    (r"response_length/mean", "verl, ROLL", "response_length", Group.LENGTH, LENGTH, NONE),
    (r"(train/)?completions?(/mean)?_length", HF, "response_length", Group.LENGTH, LENGTH, NONE),
    (r"(train/)?completions/mean_length", HF, "response_length", Group.LENGTH, LENGTH, NONE),
    (r"(train/)?response_length", "OpenRLHF", "response_length", Group.LENGTH, LENGTH, NONE),
    (r"(train/)?mean_gen_tokens_per_sample", "NeMo-RL", "response_length", Group.LENGTH, LENGTH, NONE),
    (r"(generate/)?avg_num_tokens", "SkyRL", "response_length", Group.LENGTH, LENGTH, NONE),
    (r"seq_len/(all/)?mean", "prime-rl", "response_length", Group.LENGTH, LENGTH, NONE),
)
# PipelineRL clips against the rollout's logprobs, so mismatch moves it directly; verl and TRL against their own.
PIPELINERL = (
    LoggedMetric(
        r"rl/clamp_log_ratio_new_old_indicator",
        "PipelineRL",
        "clip_fraction",
        Group.OBJECTIVE,
        "share of tokens clipped against the rollout; whole sequences under gspo, only above under reinforce",
        COUNTS,
        Weights.CURRENT,
    ),
    LoggedMetric(
        r"rl/ess",
        "PipelineRL",
        ESS,
        Group.CORRECTION,
        "(sum r)^2 / sum r^2 / tokens; clamped at 1 + epsilon_high under policy_loss reinforce",
        BEFORE,
        Weights.CURRENT,
    ),
)

NAMES = (
    *(
        LoggedMetric(pattern, framework, canonical, Group.CORRECTION, definition, clip, Weights.ROLLOUT)
        for pattern, framework, canonical, definition, clip in CORRECTIONS
    ),
    *(LoggedMetric(*row) for row in TRAINING),
    *PIPELINERL,
)

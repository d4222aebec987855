"""Names for the difference between trainer and rollout logprobs; d = trainer - rollout per token, r = exp(d)."""

from rlaudit.curves.logged_metric import Clip, Group, LoggedMetric, Weights

BEFORE, AFTER = Clip.BEFORE, Clip.AFTER
ROLLOUT, CURRENT = Weights.ROLLOUT, Weights.CURRENT

K1 = "mean over tokens of -d"
K3 = "mean over tokens of r - 1 - d"
MEAN_ABS = "mean over tokens of |d|"
BY_SEQUENCE = "mean over sequences of the mean over tokens of "
PPL_RATIO = "mean over sequences of exp(-mean d)"
LOG_PPL_ABS = "mean over sequences of |mean d|"
CHI2_TOKEN = "mean over tokens of r^2, minus 1"
CHI2_PRODUCT = "mean over sequences of (product of r)^2, minus 1"
CHI2_GEOMETRIC = "mean over sequences of (geometric mean of r)^2, minus 1"
UNLESS_TYPE = ", unless reference_policy_kl_type says otherwise"
AFTER_MASK = "proximal against behaviour policy, after its mask or clamp"

ROWS: tuple[tuple[str, str, str, str, Clip, Weights], ...] = (
    (r"rl/kl_new_old", "PipelineRL", "k3", BY_SEQUENCE + "r - 1 - d", BEFORE, CURRENT),
    (r"rl/mean_abs_log_ratio_new_old", "PipelineRL", "mean_abs_log_ratio", BY_SEQUENCE + "|d|", BEFORE, CURRENT),
    (
        r"rl/ratio_new_old",
        "PipelineRL",
        "mean_ratio",
        BY_SEQUENCE + "r; clamped at 1 + epsilon_high under policy_loss reinforce",
        BEFORE,
        CURRENT,
    ),
    # rLLM has verl's metrics under names of its own; ms-swift shares a prefix with it and not all definitions.
    (r"(rollout_corr|offpolicy)/kl", "verl, rLLM", "k1", K1, BEFORE, ROLLOUT),
    (r"(rollout_corr|offpolicy)/k3_kl", "verl, rLLM", "k3", K3, BEFORE, ROLLOUT),
    (r"(rollout_corr|offpolicy)/log_ppl_diff", "verl, rLLM", "log_ppl_diff", BY_SEQUENCE + "-d", BEFORE, ROLLOUT),
    (r"(rollout_corr|offpolicy)/log_ppl_abs_diff", "verl, rLLM", "log_ppl_abs_diff", LOG_PPL_ABS, BEFORE, ROLLOUT),
    (r"(rollout_corr|offpolicy)/ppl_ratio", "verl, rLLM", "ppl_ratio", PPL_RATIO, BEFORE, ROLLOUT),
    (r"(rollout_corr|offpolicy)/chi2_token", "verl, rLLM", "chi2_token", CHI2_TOKEN, BEFORE, ROLLOUT),
    (r"(rollout_corr|offpolicy)/chi2_seq", "verl, rLLM", "chi2_sequence", CHI2_PRODUCT, BEFORE, ROLLOUT),
    (r"(train/)?rollout_correction/kl", "ms-swift, rLLM", "k1", K1, BEFORE, ROLLOUT),
    (r"(train/)?rollout_correction/k3_kl", "ms-swift, rLLM", "k3", K3 + "; ms-swift clamps it at 10", BEFORE, ROLLOUT),
    (r"(train/)?rollout_correction/log_ppl_diff", "ms-swift", "log_ppl_diff", BY_SEQUENCE + "-d", BEFORE, ROLLOUT),
    (r"(train/)?rollout_correction/log_ppl_abs_diff", "ms-swift", "log_ppl_abs_diff", LOG_PPL_ABS, BEFORE, ROLLOUT),
    (r"(train/)?rollout_correction/ppl_ratio", "ms-swift", "ppl_ratio", PPL_RATIO, BEFORE, ROLLOUT),
    (r"(train/)?rollout_correction/chi2_token", "ms-swift", "chi2_token", CHI2_TOKEN, BEFORE, ROLLOUT),
    (r"(train/)?rollout_correction/chi2_seq", "ms-swift", "chi2_sequence", CHI2_GEOMETRIC, BEFORE, ROLLOUT),
    (
        r"training/rollout_probs_diff_mean",
        "verl, rLLM",
        "probs_diff_mean",
        "mean over tokens of |p_trainer - p_rollout|: probabilities, although verl's docstring says logprobs",
        BEFORE,
        ROLLOUT,
    ),
    (
        r"training/rollout_actor_probs_pearson_corr",
        "verl",
        "probs_correlation",
        "correlation over tokens of p_trainer and p_rollout",
        BEFORE,
        ROLLOUT,
    ),
    (
        r"(train/)?sampling/sampling_logp_difference/mean",
        "TRL, unsloth",
        "mean_abs_log_ratio",
        MEAN_ABS,
        BEFORE,
        ROLLOUT,
    ),
    (r"(train/)?sampling/rollout_kl_k1/mean", "unsloth", "k1", K1, BEFORE, ROLLOUT),
    (r"(train/)?sampling/rollout_kl_k3/mean", "unsloth", "k3", K3, BEFORE, ROLLOUT),
    (r"policy/rollout_train_logprobs_abs_diff_mean", "SkyRL", "mean_abs_log_ratio", MEAN_ABS, BEFORE, ROLLOUT),
    (r"(train/)?vllm_kl", "OpenRLHF", "k1", K1, BEFORE, ROLLOUT),
    (r"mismatch_kl/(all/)?mean", "prime-rl", "k3", K3, BEFORE, CURRENT),
    (r"(train/)?mismatch_kl", "slime", "k1", K1, BEFORE, ROLLOUT),
    (r"(train/)?mismatch_k3_kl", "slime", "k3", K3, BEFORE, ROLLOUT),
    (r"(train/)?train_rollout_logprob_abs_diff", "slime, vime", "mean_abs_log_ratio", MEAN_ABS, BEFORE, ROLLOUT),
    (r"optim/kl_sample_train_v1", "Tinker", "k1", K1, BEFORE, ROLLOUT),
    (r"optim/kl_sample_train_v2", "Tinker", "k2", "mean over tokens of d^2 / 2", BEFORE, ROLLOUT),
    (
        r"(train/)?token_mult_prob_error",
        "NeMo-RL",
        "token_mult_prob_error",
        "mean over tokens of exp|d|",
        BEFORE,
        ROLLOUT,
    ),
    (r"(train/)?gen_kl_error", "NeMo-RL", "k3", K3 + UNLESS_TYPE, BEFORE, ROLLOUT),
    (
        r"(train/)?policy_kl_error",
        "NeMo-RL",
        "k3_reverse",
        "mean over tokens of 1/r - 1 + d" + UNLESS_TYPE,
        BEFORE,
        ROLLOUT,
    ),
    (
        r"(train/)?js_divergence_error",
        "NeMo-RL",
        "js_divergence",
        "half of both estimates against their mixture",
        BEFORE,
        ROLLOUT,
    ),
    (r"(train/)?sampling_importance_ratio", "NeMo-RL", "mean_ratio", "mean over tokens of r", BEFORE, ROLLOUT),
    (r"(.*/)?behave_approx_kl(/avg)?", "AReaL", "k1_proximal", AFTER_MASK, AFTER, ROLLOUT),
    (r"(.*/)?behave_imp_weight(/avg)?", "AReaL", "ratio_proximal", AFTER_MASK, AFTER, ROLLOUT),
    (r"(.*/)?logp_abs_diff(/avg)?", "AReaL", "mean_abs_log_ratio", MEAN_ABS, BEFORE, CURRENT),
    (r"actor/train_infer_ratio_token_mean(@sum)?", "ROLL", "mean_ratio", BY_SEQUENCE + "r, summed", BEFORE, ROLLOUT),
    (
        r"actor/train_infer_diff_token_mean(@sum)?",
        "ROLL",
        "probs_difference",
        BY_SEQUENCE + "p_trainer - p_rollout, signed, summed",
        BEFORE,
        ROLLOUT,
    ),
    (r"debug/vllm_vs_local_logprob_diff_mean", "open-instruct", "mean_abs_log_ratio", MEAN_ABS, BEFORE, CURRENT),
    (
        r"debug/vllm_local_reverse_kl",
        "open-instruct",
        "weighted_log_ratio",
        "mean over tokens of -d weighted by the rollout's probability: biased, not a KL",
        BEFORE,
        CURRENT,
    ),
)

NAMES = tuple(
    LoggedMetric(pattern, framework, canonical, Group.LOGPROBS, definition, clip, weights)
    for pattern, framework, canonical, definition, clip, weights in ROWS
)

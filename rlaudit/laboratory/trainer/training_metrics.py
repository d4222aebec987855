"""What a training step logs, under PipelineRL's names and by its definitions; part of the training script (train.py).

Means are over sequences of the mean over their tokens, as PipelineRL has them, except lag and the effective sample
size, which are over all tokens.
Source: PipelineRL, finetune/rl/__init__.py (stats) and finetune_loop.py (stats/lag, rl/ess).
"""

import torch


def mean(values_ST, mask_ST):
    """Return the mean over sequences of the mean over tokens."""
    length_S = mask_ST.sum(1).clamp(min=1)
    return float(((values_ST * mask_ST).sum(1) / length_S).mean())


def mean_of_tokens(values_ST, mask_ST):
    """Return the mean over tokens."""
    return float((values_ST * mask_ST).sum() / mask_ST.sum())


def k3(log_ratio_ST):
    """Return Schulman's estimator of each token's divergence, in nats."""
    return torch.expm1(log_ratio_ST) - log_ratio_ST


def step_metrics(new_ST, old_ST, entropy_ST, rewards_S, clipped_ST, mask_ST):
    """Return the metrics of a step. new: the trainer's logprobs, old: the rollout's, of the sampled tokens (S, T)."""
    log_ratio_ST = new_ST - old_ST
    ratio_ST = torch.exp(log_ratio_ST) * mask_ST
    return {
        "rl/reward": float(rewards_S.mean()),
        "rl/entropy": mean(entropy_ST, mask_ST),
        "rl/old_logprobs": mean(old_ST, mask_ST),
        "rl/new_logprobs": mean(new_ST, mask_ST),
        "rl/kl_new_old": mean(k3(log_ratio_ST), mask_ST),
        "rl/mean_abs_log_ratio_new_old": mean(log_ratio_ST.abs(), mask_ST),
        "rl/ratio_new_old": mean(ratio_ST, mask_ST),
        "rl/clamp_log_ratio_new_old_indicator": mean(clipped_ST.to(new_ST.dtype), mask_ST),
        "rl/ess": float(ratio_ST.sum() ** 2 / (ratio_ST**2).sum() / mask_ST.sum()),
    }


def advantages(rewards_SG, divide_by=1e-4):
    """Return rewards minus the mean of the others of their group, over the group's standard deviation + 1e-4 (S, G)."""
    group = rewards_SG.shape[1]
    others = (rewards_SG.sum(1, keepdim=True) - rewards_SG) / (group - 1)
    return (rewards_SG - others) / (rewards_SG.std(1, keepdim=True) + divide_by)

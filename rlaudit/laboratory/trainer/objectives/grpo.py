"""GRPO: every token has its own ratio and its own clip; a sequence counts by the mean of its tokens.

    L = - mean_i 1 / |y_i| sum_t min(r_it A_i, clip(r_it, 1 - low, 1 + high) A_i)

Source: Shao et al., "DeepSeekMath" (2024), equation 3, without the penalty to a reference model. TRL: loss_type "grpo".
"""

import torch


def loss(log_ratio_ST, advantages_S, mask_ST, clip, weights_ST):
    """Return the mean over sequences of the mean over tokens."""
    low, high = clip
    ratio_ST = torch.exp(log_ratio_ST)
    clipped_ST = ratio_ST.clamp(1 - low, 1 + high)
    gain_ST = torch.minimum(ratio_ST * advantages_S[:, None], clipped_ST * advantages_S[:, None])
    per_sequence_S = (gain_ST * weights_ST * mask_ST).sum(1) / mask_ST.sum(1).clamp(min=1)
    return -per_sequence_S.mean(), (clipped_ST != ratio_ST) * mask_ST

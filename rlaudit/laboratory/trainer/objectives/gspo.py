"""GSPO: one importance ratio a sequence, the geometric mean of its tokens' ratios, clipped as a whole.

    s_i = (pi(y_i) / pi_old(y_i)) ** (1 / |y_i|)        L = - mean_i min(s_i A_i, clip(s_i, 1 - low, 1 + high) A_i)

The ranges are of the order of 1e-4, because a mean over tokens moves little: a mismatch of that size clips everything.
Source: Zheng et al., "Group Sequence Policy Optimization" (2025), equations 5 and 7. TRL: importance_sampling_level
"sequence"; PipelineRL: policy_loss gspo, which weighs sequences by their length.
"""

import torch


def loss(log_ratio_ST, advantages_S, mask_ST, clip, weights_ST):
    """Return the mean over sequences; a sequence's correction is the mean of its tokens'."""
    low, high = clip
    length_S = mask_ST.sum(1).clamp(min=1)
    ratio_S = torch.exp((log_ratio_ST * mask_ST).sum(1) / length_S)
    clipped_S = ratio_S.clamp(1 - low, 1 + high)
    gain_S = torch.minimum(ratio_S * advantages_S, clipped_S * advantages_S)
    weight_S = (weights_ST * mask_ST).sum(1) / length_S
    return -(gain_S * weight_S).mean(), (clipped_S != ratio_S)[:, None] * mask_ST

"""PPO's clipped surrogate, the mean over all tokens of a batch, so that long sequences count for more than in GRPO.

    L = - sum_it min(r_it A_i, clip(r_it, 1 - low, 1 + high) A_i) / sum_i |y_i|

There is no critic: advantages are those of the group, as PipelineRL's policy_loss ppo has them.
Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017), equation 7. TRL: loss_type "bnpo".
"""

import torch


def loss(log_ratio_ST, advantages_S, mask_ST, clip, weights_ST):
    """Return the mean over all tokens."""
    low, high = clip
    ratio_ST = torch.exp(log_ratio_ST)
    clipped_ST = ratio_ST.clamp(1 - low, 1 + high)
    gain_ST = torch.minimum(ratio_ST * advantages_S[:, None], clipped_ST * advantages_S[:, None])
    total = (gain_ST * weights_ST * mask_ST).sum() / mask_ST.sum().clamp(min=1)
    return -total, (clipped_ST != ratio_ST) * mask_ST

"""Truncated importance sampling: each token is weighed by its ratio, and no token by more than the limit.

Source: Yao et al., "Your efficient RL framework secretly brings you off-policy RL training" (2025). TRL:
vllm_importance_sampling_mode "token_truncate"; verl: rollout_is token.
"""

import torch


def weights(log_ratio_ST, mask_ST, limit):
    """Return min(r, limit) of each token."""
    return torch.exp(log_ratio_ST).clamp(max=limit) * mask_ST

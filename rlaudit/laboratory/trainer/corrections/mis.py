"""Masked importance sampling: whole sequences whose ratio is beyond the limit are left out, the others keep it.

Source: Liu, Li et al., "When speed kills stability" (2025), sequence-level MIS. TRL: vllm_importance_sampling_mode
"sequence_mask".
"""

import torch


def weights(log_ratio_ST, mask_ST, limit):
    """Return the ratio of the whole sequence at each of its tokens, or 0."""
    ratio_S = torch.exp((log_ratio_ST * mask_ST).sum(1))
    return torch.where(ratio_S <= limit, ratio_S, torch.zeros_like(ratio_S))[:, None] * mask_ST

"""IcePop: tokens whose ratio leaves the band on either side are left out, those inside keep it.

Source: Ling team, "Small leak can sink a great ship" (2025): band [0.5, 5]. Here 1 / limit .. limit.
"""

import torch


def weights(log_ratio_ST, mask_ST, limit):
    """Return the ratio of each token, or 0 outside 1 / limit .. limit."""
    ratio_ST = torch.exp(log_ratio_ST)
    return torch.where((ratio_ST >= 1 / limit) & (ratio_ST <= limit), ratio_ST, torch.zeros_like(ratio_ST)) * mask_ST

"""Objectives of policy optimisation, one file each; they run in the trainer's interpreter and are loaded by path.

To add one, add a file with `loss(log_ratio_ST, advantages_S, mask_ST, clip, weights_ST)`. S sequences, T tokens, padded
on the right. log_ratio: logprobs of the current policy minus those of the policy that the objective calls old.
clip: (low, high), as used in 1 - low .. 1 + high. weights: of each token by a correction (corrections/), 1 without.
It returns the loss and an indicator (S, T) of what was clipped.
"""

"""Corrections of the mismatch between trainer and rollout, one file each; loaded by path in the trainer's interpreter.

With a correction the objective's ratio is against the trainer's own logprobs at the beginning of the step, and what
separates those from the rollout's becomes a weight. To add one, add a file with
`weights(log_ratio_ST, mask_ST, limit)`: log_ratio = trainer - rollout, limit: the recipe's correction_limit. The audit
never recommends one while a backend is broken: it hides the mismatch from the clip rate and leaves it in the data.
"""

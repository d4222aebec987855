"""Conversations in a log: requests whose prompt holds what was sampled before.

turn            a request with its prompt and what was sampled
matched_runs    the stretches that two rows of ids have in common
history         what a prompt has otherwise than it was sent and sampled
join            which earlier turn a prompt continues
"""

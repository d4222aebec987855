"""Questions to a running server: what its logprobs mean, from its answers alone. No flag is believed.

`probe.py` has the course. `changes/` has a file for each sampling parameter: how it is requested, and what its logprobs
and draws are if it is applied. `checks/` has a file for each other question. To add one of either, add its file.
"""

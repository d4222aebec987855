"""The logprobs of a trainer that the recorder is told of (`--trainer-function agent_loss:token_logprobs`)."""

import torch


def token_logprobs(model, ids_BT, keep):
    """Return (B, keep): the logprobs of the last tokens of each row."""
    logits_BTV = model(ids_BT).logits[:, -keep - 1 : -1].float()
    return torch.log_softmax(logits_BTV, -1).gather(-1, ids_BT[:, -keep:, None]).squeeze(-1)

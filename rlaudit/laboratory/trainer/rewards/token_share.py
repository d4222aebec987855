"""The share of the answer's tokens that the completion has in their places."""


def reward(token_ids, text, answer):
    """answer: a list of token ids."""
    return sum(ours == theirs for ours, theirs in zip(token_ids, answer)) / len(answer)

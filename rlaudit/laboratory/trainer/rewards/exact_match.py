"""1 if the completion is the answer, spaces around it aside."""


def reward(token_ids, text, answer):
    """answer: a text."""
    return float(text.strip() == str(answer).strip())

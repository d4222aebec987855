"""The share of the answer's digits that the completion begins with."""


def reward(token_ids, text, answer):
    said = text.strip()
    same = 0
    for one, wanted in zip(said, answer, strict=False):
        if one != wanted:
            break
        same += 1
    return same / len(answer)

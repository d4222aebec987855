"""1 if the last number of the completion is the answer, as graders of arithmetic have it."""

import re

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def reward(token_ids, text, answer):
    """answer: a number or its text; thousands may be written with commas."""
    found = NUMBER.findall(text.replace(",", ""))
    return float(bool(found) and float(found[-1]) == float(str(answer).replace(",", "")))

"""1 if the last number of the completion is the answer, as graders of arithmetic have it."""

import re

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def reward(token_ids, text, answer):
    """answer: a number or its text; thousands may be written with commas."""
    numbers = NUMBER.findall(text.replace(",", ""))
    return float(bool(numbers) and float(numbers[-1]) == float(str(answer).replace(",", "")))

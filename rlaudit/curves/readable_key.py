"""The pattern of a log's key as a person would write it."""

import re


def readable_keys(pattern: str) -> tuple[str, ...]:
    """The keys that a pattern of `metric_names` stands for: alternatives apart, what may be missing in brackets."""
    begin = re.match(r"\(([^()?]+)\)(?!\?)", pattern)
    if begin is not None:
        alternatives = [alternative + pattern[begin.end() :] for alternative in begin[1].split("|")]
    else:
        alternatives = _split(pattern)
    return tuple(_readable(one) for one in alternatives)


def _split(pattern: str) -> list[str]:
    """Alternatives outside parentheses."""
    parts, depth = [""], 0
    for letter in pattern:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _readable(pattern: str) -> str:
    text = pattern.replace("[^/]+", "NAME").replace(".+", "NAME").replace(".*/", ".../").replace(r"\d?", "[N]")
    text = re.sub(r"(\w)\?", r"[\1]", text.replace("[_/]", "_"))
    return re.sub(r"\(([^()]*)\)\?", r"[\1]", text)

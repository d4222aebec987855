"""A text whose comments are blanks: lines and columns stay, and what somebody only mentions is no pin."""

import re

_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")


def without_comments(text: str) -> str:
    """For every syntax in which `#` behind white space begins a comment; a URL's `#` stands behind none."""
    return _COMMENT.sub(lambda match: " " * len(match[0]), text)

"""Words of the form `$'...'`: quotes in which backslashes stand for control characters.

Read: the escapes of one letter. An octal, hexadecimal or Unicode escape is kept as it is written.
Source: Bash manual 5.2, ANSI-C Quoting.
"""

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "e": "\x1b"}


def ansi_quoted(text: str, at: int) -> tuple[str, int] | None:
    """What stands between `at`, the first character inside the quotes, and the closing one, and the position after
    that; None where nothing closes them."""
    made = []
    while at < len(text) and text[at] != "'":
        if text[at] == "\\" and at + 1 < len(text):
            made.append(_ESCAPES.get(text[at + 1], "\\" + text[at + 1]))
            at += 2
        else:
            made.append(text[at])
            at += 1
    return ("".join(made), at + 1) if at < len(text) else None

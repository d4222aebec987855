"""Where a bracket of a shell script closes, with quotes and nesting respected."""


def after_closing(text: str, at: int, opener: str, closer: str) -> int | None:
    """The position after the bracket that closes the one before `at`; None where the text ends first."""
    depth = 1
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
        elif character == "'" and opener == "(":
            end = text.find("'", at + 1)
            if end < 0:
                return None
            at = end
        elif character == opener:
            depth += 1
        elif character == closer:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None

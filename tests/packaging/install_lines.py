"""Finds what would install rlaudit from a place that is not ours.

The name is not registered on the package index, and the repository has no owner yet. A stranger who registers either
runs code on the machines of all who copied such a line. `<OWNER>` cannot be registered: such an address fails until it
is filled in.
"""

import re
from itertools import pairwise

# Verbs after which names of packages stand, whatever options stand in between.
INSTALLER = re.compile(
    r"""\b(?:
      (?:pip|pip3|pip3?[.\d]+)\b[^\n;&|`]*?\s(?:install|download|wheel)
    | uv\b[^\n;&|`]*?\s(?:add|(?:pip|tool)\b[^\n;&|`]*?\s(?:install|sync|upgrade))
    | (?P<runs>uvx|uv\b[^\n;&|`]*?\stool\b[^\n;&|`]*?\srun|pipx\b[^\n;&|`]*?\srun)
    | (?P<only_with>uv\b[^\n;&|`]*?\srun)
    | pipx\b[^\n;&|`]*?\s(?:install|inject|upgrade)
    | (?:poetry|pdm|pixi|rye)\s+add
    | (?:conda|mamba|micromamba)\b[^\n;&|`]*?\sinstall
    )\b(?P<words>[^\n]*)""",
    re.VERBOSE | re.IGNORECASE,
)
END_OF_COMMAND = re.compile(r"&&|\|\||[;|`]|\s\#|\$\(")
WORD = re.compile(r"""'[^']*'|"[^"]*"|\S+""")
# rlaudit, rlaudit[remote], rlaudit==0.4.0, rlaudit@latest; not `rlaudit @ URL`, which is one quoted word.
NAME = re.compile(r"rlaudit(\[[^\]]*\])?((===?|[~!<>]=?)\s*\S.*|@\S+)?", re.IGNORECASE)
# These say what to install; what a runner is given beside them is a command of it.
GIVES = ("--from", "--spec", "--with", "-w")
# A word that is a requirement, whatever stands before it.
REQUIREMENT = re.compile(
    r"""rlaudit\[[\w\s,.-]+\](?!\s*@\s)             # an extra
    | ["']rlaudit\s*(?:===?|[~!<>]=?)\s*\d          # a release in quotes
    # A line of a list, or of a requirements file.
    | ^\s*(?:-\s+)?["']?rlaudit(?:\s*(?:===?|[~!<>]=?)\s*[\d*].*)?["']?\s*(?:\#.*)?$
    | (?:dependencies|requirements|pip)["']?\s*[:=]\s*\[[^\]]*\brlaudit\b(?!\s*@\s)
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
ADDRESS = re.compile(
    r"""\b(?:github|gitlab|codeberg|bitbucket)\.(?:com|org)[:/](?!<OWNER>/)[^\s/]+/rlaudit\b
    | \buses:\s*["']?(?!<OWNER>/|\./)[^\s/]+/rlaudit\b
    | \brepo:\s*["']?(?!\S*[:/]<OWNER>/)\S*[:/][^\s/]+/rlaudit\b
    | \b(?:image:|FROM|docker\s+(?:pull|run)\b[^\n]*?)\s+["']?(?!registry\.example\.com/)
      (?:[\w.<>-]+/)*rlaudit(?=[:@\s"']|$)
    """,
    re.VERBOSE,
)


def unowned_installs(text: str, requirements: bool = True) -> list[str]:
    """Return the places that install an unowned rlaudit, as they are written.

    requirements: whether a line that is only the name is a requirement, as in CI files.
    """
    text = re.sub(r"\\\n\s*", " ", text)
    # An argument list, and a command that is wrapped in a comment or folded by YAML.
    text = re.sub(r"""["']\s*,\s*(?:\n\s*)?["']""", " ", text)
    text = re.sub(r"(\b(?:install|add|uvx|run)|--from|--with|--spec)[ \t]*[>|]?\n[\s#*>]*", r"\1 ", text)
    found = [match[0].strip() for match in INSTALLER.finditer(text) if _installs(match)]
    found += [match[0].strip() for match in ADDRESS.finditer(text)]
    if requirements:
        found += [match[0].strip() for match in REQUIREMENT.finditer(text)]
    else:
        found += re.findall(r"rlaudit\[[a-z]+\](?!\s*@\s)", text)
    return found


def _installs(command: re.Match[str]) -> bool:
    words = [word.strip("'\"()[]{},:.") if not word.startswith(("'", '"')) else word[1:-1]
             for word in WORD.findall(END_OF_COMMAND.split(command["words"])[0])]  # fmt: skip
    given = [value for word, after in pairwise([*words, ""]) for value in _given(word, after)]
    if command["only_with"] or any(word.split("=")[0] in ("--from", "--spec") for word in words):
        named = given
    elif command["runs"]:
        named = [*given, next((word for word in words if not word.startswith("-")), "")]
    else:
        named = words
    return any(NAME.fullmatch(name.strip()) for name in named)


def _given(word: str, after: str) -> list[str]:
    """Return what an option of GIVES names, which may be several with commas."""
    option, mark, value = word.partition("=")
    return (value if mark else after).split(",") if option in GIVES else []

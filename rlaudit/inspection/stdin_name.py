"""What standard input is taken for where nobody named it: the reader of a file is chosen by its ending."""

import re

STEM = "stdin"
_PYTHON = re.compile(r"^(?:import \w|from [\w.]+ import |def \w|class \w|async def )", re.M)
_SHELL = re.compile(
    r"^[ \t]*(?:(?:export[ \t]+)?[A-Z_]+=\S*[ \t]+)*"
    r"(?:export|vllm serve|trl|torchrun|accelerate|ray|srun|uv run|python3?|docker)\s",
    re.M,
)
_DOCKERFILE = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n|ARG [^\n]*\n)*FROM \S")


def stdin_name(text: str) -> str:
    """`stdin.yaml` where nothing else is sure; a name that a user gives wins over this."""
    if text.startswith("#!"):
        return f"{STEM}{'.py' if 'python' in text.partition(chr(10))[0] else '.sh'}"
    if text.lstrip()[:1] == "{":
        return f"{STEM}.json"
    if _DOCKERFILE.match(text):
        return f"{STEM}.dockerfile"
    if _is_toml(text):
        return f"{STEM}.toml"
    if _PYTHON.search(text):
        return f"{STEM}.py"
    return f"{STEM}.sh" if _SHELL.search(text) else f"{STEM}.yaml"


def _is_toml(text: str) -> bool:
    import tomllib

    try:
        return bool(tomllib.loads(text))
    except (ValueError, RecursionError):
        return False

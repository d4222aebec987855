"""YAML files written for rlaudit: recipes and settings. Rollout configs are read by yaml_text.py, with places.

They may come from strangers: a recipe comes with a pull request. What would fill the memory of the machine, or never
end, is refused.
"""

from pathlib import Path
from typing import Any

import yaml

from rlaudit.errors import UsageError
from rlaudit.files.read_regular import read_regular
from rlaudit.secrets import learn, learn_text

MOST_BYTES = 1_000_000
# Counting what an alias repeats: ten levels of ten aliases are a file of 1 kB and 10^10 values.
MOST_VALUES = 100_000
DEEPEST = 100


def read_yaml_file(path: Path) -> Any:
    """Return what the file holds. Raises UsageError with the line where it stops being YAML."""
    try:
        text = read_regular(path, MOST_BYTES, "no recipe").decode("utf-8")
        learn_text(text)
        document = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        while_ = f" ({error.context})" if error.context else ""
        raise UsageError(f"{path} is not readable as YAML: {error.problem}{line}{while_}") from error
    except RecursionError:
        raise UsageError(f"{path} is not readable as YAML: nested too deeply") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{path} is not readable as YAML: {' '.join(str(error).split())}") from error
    excess = _excess(document)
    if excess is not None:
        raise UsageError(f"{path}: {excess}, which no recipe or settings file has", "write out what its aliases repeat")
    learn(document)
    return document


def _excess(document: Any) -> str | None:
    """Return which limit the document exceeds, None if none, counted as if every alias were written out."""
    count = 0
    todo = [(document, 1)]
    while todo:
        value, depth = todo.pop()
        count += 1
        if depth > DEEPEST:
            return f"nested more than {DEEPEST} deep"
        if count > MOST_VALUES:
            return f"more than {MOST_VALUES} values"
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list | set | tuple) else ()
        todo += ((child, depth + 1) for child in children)
    return None

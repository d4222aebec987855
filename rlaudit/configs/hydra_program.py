"""The config that a Hydra program starts from, if the program's source is found, with the command's overrides on top.

`python -m verl.trainer.main_ppo --config-name=x`: the decorator `@hydra.main(config_path=..., config_name=...)` of the
module names the config, unless the command names another one.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from posixpath import normpath
from typing import Any

from rlaudit.configs.framework_source.checkout import checkout_of
from rlaudit.configs.hydra_defaults import Composed, composed
from rlaudit.configs.hydra_dotlist import Overridden
from rlaudit.configs.merging import merged, reread
from rlaudit.configs.program import program_source
from rlaudit.configs.source import Source

_PACKAGED = "pkg://"
_DECORATOR = re.compile(r"@hydra\.main\(([^)]*)\)")
_NAMED = re.compile(r"""\b(config_path|config_name)\s*=\s*["']([^"'\n]*)["']""")


def config_named_in(text: str) -> str | None:
    """Return the file that a program's decorator names, from the program's folder; None if it names none."""
    decorator = _DECORATOR.search(text)
    options: dict[str, Any] = dict(_NAMED.findall(decorator[1])) if decorator is not None else {}
    return _file_of(options)


def _file_of(options: Mapping[str, Any]) -> str | None:
    path, name = options.get("config_path"), options.get("config_name")
    if not isinstance(path, str) or not isinstance(name, str):
        return None
    return f"{path}/{name if name.endswith(('.yaml', '.yml')) else f'{name}.yaml'}"


def started_from(source: Source, overridden: Overridden) -> Composed | None:
    """Return the program's config with the overrides of a command on top; None if program or config is not found."""
    from rlaudit.configs.syntax.flags import flags, overrides

    program = program_source(source, overridden.command)
    if program is None:
        return None
    decorator = _DECORATOR.search(program.text)
    options: dict[str, Any] = dict(_NAMED.findall(decorator[1])) if decorator is not None else {}
    options |= {flag.name: flag.value.value for flag in flags(overridden.command.words) if flag.value is not None}
    file = _file_of(options)
    if file is None:
        return None
    base = _beside(program, file) or source.above(normpath(file))
    choices = [
        (flag.name, flag.value.value) for flag in overrides(overridden.command.words)
        if flag.value is not None and isinstance(flag.value.value, str) and _is_group(flag.name)
    ]  # fmt: skip
    whole = composed(base, tuple(choices)) if base is not None else None
    if base is None or whole is None:
        return None
    return replace(whole, root=reread(merged(whole.root, overridden.root)), parts=(base.path, *whole.parts))


def _is_group(name: str) -> bool:
    """Return whether it is a group as in `a/b` and `a@x.y`, not a key as in `x.y`."""
    return "@" in name or "." not in name


@lru_cache(maxsize=64)
def _beside(program: Source, file: str) -> Source | None:
    """Return the config beside the program, or `pkg://a.b/x.yaml` of a package. The same object each time, so that it
    is composed once for all commands.
    """
    folder, _, name = file.removeprefix(_PACKAGED).rpartition("/")
    if not file.startswith(_PACKAGED):
        return program.neighbour(file)
    path = f"{folder.replace('.', '/')}/{name}"
    checkout = checkout_of(program, folder.partition(".")[0], path)
    return checkout.file(path) if checkout is not None else None

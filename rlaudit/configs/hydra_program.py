"""The config that a Hydra program starts from, if the program's source is found, with the command's overrides on top.

`python -m verl.trainer.main_ppo --config-name=x`: the decorator `@hydra.main(config_path=..., config_name=...)` of the
module names the config, unless the command names another one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from rlaudit.configs.framework_source.checkout import checkout_of
from rlaudit.configs.hydra_defaults import Choice, Composed, composed
from rlaudit.configs.hydra_dotlist import Overridden, overriding
from rlaudit.configs.program import program_source
from rlaudit.configs.source import Source

if TYPE_CHECKING:
    from rlaudit.configs.syntax.flags import Flag

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
    made = overrides(overridden.command.words)
    whole = composed(base, tuple(_choices(made))) if base is not None else None
    if base is None or whole is None:
        return None
    values = [flag for flag in made if flag.name not in whole.chosen]
    return replace(whole, root=overriding(whole.root, values), parts=(base.path, *whole.parts))


def _choices(overrides: "Sequence[Flag]") -> Iterator[Choice]:
    """Yield the overrides that may be choices of groups: `a/b=x`, `a@x.y=x`, no keys as in `x.y`."""
    for flag in overrides:
        value = flag.value.value if flag.value is not None else None
        names = tuple(value) if isinstance(value, list) else (value,)
        is_removed = flag.operator == "~"
        if ("@" in flag.name or "." not in flag.name) and (is_removed or all(isinstance(name, str) for name in names)):
            yield Choice(flag.name, () if is_removed else names, flag.operator.startswith("+"))


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

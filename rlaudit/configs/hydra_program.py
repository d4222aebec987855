"""The config that a Hydra program starts from, if the program's source is there: overrides are made on top of it.

`python -m verl.trainer.main_ppo --config-name=x`: the decorator `@hydra.main(config_path=..., config_name=...)` of the
module says where the config lies, and the command may say otherwise.
"""

import re
from dataclasses import replace
from functools import lru_cache
from posixpath import normpath

from rlaudit.configs.framework_source.checkout import checkout_of
from rlaudit.configs.hydra_defaults import Composed, composed
from rlaudit.configs.hydra_dotlist import Overridden
from rlaudit.configs.merging import merged, reread
from rlaudit.configs.program import program_source
from rlaudit.configs.source import Source

_PACKAGED = "pkg://"
_DECORATOR = re.compile(r"@hydra\.main\(([^)]*)\)")
_NAMED = re.compile(r"""\b(config_path|config_name)\s*=\s*["']([^"'\n]*)["']""")


def started_from(source: Source, one: Overridden) -> Composed | None:
    """Return the program's config with the overrides of a command on top; None if one of the two is not there."""
    from rlaudit.configs.syntax.flags import flags, overrides

    program = program_source(source, one.command)
    if program is None:
        return None
    asked = {flag.name: flag.value.value for flag in flags(one.command.words) if flag.value is not None}
    named = _decorated(program)
    path, name = asked.get("config_path", named.get("config_path")), asked.get("config_name", named.get("config_name"))
    if not isinstance(path, str) or not isinstance(name, str):
        return None
    file = f"{path}/{name if name.endswith(('.yaml', '.yml')) else f'{name}.yaml'}"
    base = _beside(program, file) or source.above(normpath(file))
    choices = [
        (flag.name, flag.value.value) for flag in overrides(one.command.words)
        if flag.value is not None and isinstance(flag.value.value, str) and _is_group(flag.name)
    ]  # fmt: skip
    whole = composed(base, tuple(choices)) if base is not None else None
    if base is None or whole is None:
        return None
    return replace(whole, root=reread(merged(whole.root, one.root)), parts=(base.path, *whole.parts))


def _is_group(name: str) -> bool:
    """`a/b` and `a@x.y` name groups; `x.y` is a key."""
    return "@" in name or "." not in name


@lru_cache(maxsize=64)
def _beside(program: Source, file: str) -> Source | None:
    """The same config for every command that starts from it, so that it is composed once. `pkg://a.b/x.yaml` lies in a
    package, where its source is there.
    """
    folder, _, name = file.removeprefix(_PACKAGED).rpartition("/")
    if not file.startswith(_PACKAGED):
        return program.neighbour(file)
    path = f"{folder.replace('.', '/')}/{name}"
    checkout = checkout_of(program, folder.partition(".")[0], path)
    return checkout.file(path) if checkout is not None else None


def _decorated(program: Source) -> dict[str, str]:
    """Return what `@hydra.main` says."""
    found = _DECORATOR.search(program.text)
    return dict(_NAMED.findall(found[1])) if found is not None else {}

"""The command that is running, as words: for those who run a part of it elsewhere."""

from collections.abc import Collection

import typer


def same_command(context: typer.Context, without: Collection[str]) -> list[str]:
    """Its name and the options that were given, each with its value. without: parameters that are left out, and all
    arguments."""
    words = [str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if parameter.param_type_name == "argument" or parameter.name in without:
            continue
        if value is None or value is False or value == parameter.default:
            continue
        option = next(name for name in parameter.opts if name.startswith("--"))
        for one in value if getattr(parameter, "multiple", False) else [value]:
            words += [option, *([] if one is True else map(str, one) if isinstance(one, tuple) else [str(one)])]
    return words

"""`vllm serve` and the API server module: shell, slurm, docker-compose and Kubernetes.

What the command line says arrives: vLLM's own parser is modelled release by release. Arguments of the HTTP front end
(host, port, api key) are no engine settings. Sampling parameters come with every request, from a client
that this file does not show.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from packaging.version import Version

from rlaudit.configs.command_lines import proved
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, by_file, unwritten
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.engine_arguments.flags import FlagReader, take_variables
from rlaudit.configs.engine_arguments.invocations import Invocation, invocations
from rlaudit.configs.engine_names import dashed
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.command_edits import flags_writer, list_writer
from rlaudit.configs.syntax.expansion import assumptions
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.shell_command import TakenDefault
from rlaudit.configs.syntax.spelling import Write
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.vllm.catalogue import Catalogue

NAME = "vllm-serve"
MOST_SERVERS = 200


def recognise(source: Source) -> bool:
    """Return whether the file starts a vLLM server."""
    if "vllm" not in source.text.lower():
        return False
    try:
        return bool(invocations(source))
    except (ValueError, RecursionError) as error:
        source.refuse("commands", error)
        return False


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every server that the file starts."""
    started = invocations(source)
    configs = [_server(source, invocation, vllm) for invocation in started[:MOST_SERVERS]]
    if len(started) > MOST_SERVERS:
        others = f"the other {len(started) - MOST_SERVERS} servers that this file starts were not read"
        configs[-1] = replace(configs[-1], not_seen=(*configs[-1].not_seen, others))
    return tuple(configs)


def _server(source: Source, started: Invocation, vllm: Version) -> RolloutConfig:
    """Return the engine of one server."""
    draft = Draft(NAME, source.path)
    draft.device = by_file("image", started.image) if started.image is not None else None
    reader = FlagReader(draft, vllm, started.serve)
    reader.read(started.words, started.start)
    take_variables(draft, started.variables)
    if started.env_file is not None:
        draft.not_seen.append(f"{started.env_file.place}: the variables in this env_file were not read")
    assumed = started.command.assumed if started.command is not None else ()
    effective = (node for name, node in started.variables.items() if name in draft.environment)
    assumed += assumptions((*started.words, *effective))
    unless = ", unless the environment sets it"
    draft.not_seen += [
        taken.further(unless) if isinstance(taken, TakenDefault) else f"{taken}{unless}"
        for taken in dict.fromkeys(assumed)
    ]
    config = draft.done(model=reader.model, place=started.place, write=_writer(started, source, vllm))
    return _beside_its_file(config, started, reader)


def _beside_its_file(config: RolloutConfig, started: Invocation, reader: FlagReader) -> RolloutConfig:
    """Return the config of a command, with what the file of its `--config` may set left open."""
    named = [flag for flag in flags(started.words, started.start, reader.switch) if flag.name == "config"]
    if not named:
        return config
    text = named[-1].value.text if named[-1].value is not None else "a file"
    unread = f"{text}, the file of --config, was not read with the command: inspect that file, or record a run"
    engine = Elsewhere(f"it may be in {text}, the file of --config", config.engine)
    return replace(config, engine=engine, not_seen=(*config.not_seen, unread))


def _writer(started: Invocation, source: Source, vllm: Version) -> Write:
    """Return a function that writes flags of this server."""
    spell = partial(spell_flag, Catalogue.at(vllm).cli)
    takes = FlagReader(Draft("", ""), vllm, started.serve)

    def switch(name: str) -> bool | None:
        return takes.switch(name) if takes.meaning(name) is not None else None

    if started.command is not None:
        # The words before its flags belong to launchers.
        words = started.command.words[max(0, started.start - 1) :]
        flagged = flags_writer(replace(started.command, words=words), spell, switch)
        return proved(flagged, started.command, source) if source.is_shell else flagged
    if started.lists:
        return list_writer(started.lists, spell, source.text, switch)
    return unwritten


def spell_flag(cli: Mapping[str, str], name: str, value: Any) -> tuple[str, str] | None:
    """Return `--enable-x`, `--no-enable-x` or `--name` and its value; None if the release has no such flag."""
    flag = f"no-{dashed(name)}" if value is False else dashed(name)
    if cli.get(flag) != name:
        return None
    if isinstance(value, bool):
        return f"--{flag}", ""
    if isinstance(value, dict | list):
        return f"--{flag}", json.dumps(value)
    return (f"--{flag}", str(value)) if isinstance(value, int | float | str) else None


DIALECT = Dialect(NAME, "vLLM server command line", 0, recognise, read)

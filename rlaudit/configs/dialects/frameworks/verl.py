"""What YAML cannot say of verl: what a copy hands on, and programs and engine classes on top of it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rlaudit.configs.dialects.clause import Clause
from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.dialects.spec import Spec
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.dialects.writing import writer
from rlaudit.configs.draft import by_file
from rlaudit.configs.framework_source.checkout import checkout_of, shown
from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.merging import merged, reread
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import entries
from rlaudit.configs.syntax.spelling import Write
from rlaudit.settings.place import Edit
from rlaudit.unknown import Unknown

# The programs of verl: recipes (recipe.dapo.main_dapo) lie beside the package.
_OWN_MODULES = ("verl.", "recipe.", "rllm.")
# Ranks of adapters that vLLM takes.
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def dictionaries(source: Source, spec: Spec) -> Iterator[Tree]:
    """Yield the dictionaries that a Python program puts on top of verl's own config."""
    try:
        roots = source.dictionaries("actor_rollout_ref")
    except (ValueError, RecursionError):  # kept in source.refusals
        return
    checkout = checkout_of(source, "verl", *spec.markers) if roots else None
    base = checkout.file("verl/trainer/config/ppo_trainer.yaml") if checkout is not None else None
    config = composed(base) if base is not None else None
    for root in roots:
        if base is None or config is None:
            yield Tree(root, root, missing=(f"{spec.title}'s own config, on which the program puts this dictionary",))
        else:
            whole, parts = reread(merged(config.root, root)), (base.path, *config.parts)
            yield Tree(whole, root, parts=parts, missing=config.missing)


def handed_on(reading: Reading) -> None:
    """Leave open every written argument that the copy's file for the engine does not visibly hand on."""
    checkout, engine = reading.code.checkout, reading.draft.engine
    files = reading.spec.declared["sources"]["in process" if reading.holds("in_process") is True else "server"]
    copies = (checkout.file(file) for file in files if checkout is not None)
    source = next((copy for copy in copies if copy is not None), None)
    if source is None:
        return
    fields = {node.place: (key, isinstance(node.value, dict)) for key, node in entries(reading.section)}
    for name, setting in list(engine.items()):
        if setting.place not in fields or setting.value != setting.written:
            continue
        # A mapping such as engine_kwargs is handed on as a whole: no line names its keys.
        field, is_mapping = fields[setting.place]
        words = rf"\b{field}\b" if is_mapping else rf"""\b{name}["']?\s*[=:].*\b{field}\b"""
        if not re.search(words, source.text):
            reason = f"{shown(source.path)} is not seen to hand rollout.{field} on"
            engine[name] = replace(setting, value=Unknown(reason), note=reason)


def rank_that_vllm_takes(reading: Reading, clause: Clause) -> Any:
    """Return the next rank of an adapter that vLLM takes."""
    rank = reading.value(clause["key"])
    fits = (size for size in _RANKS if isinstance(rank, int) and size >= rank)
    return rank if isinstance(rank, Unknown) else next(fits, Unknown(f"{rank} is above every rank that vLLM takes"))


def defaults_of_requests(reading: Reading, _clause: Clause) -> Any:
    """Return what is laid over the model's generation_config.json."""
    values = {name: reading.value(f"$sampling.{name}") for name in ("temperature", "top_k", "top_p")}
    if reading.value("$sampling.repetition_penalty") is not None:
        values["repetition_penalty"] = 1.0
    values["max_new_tokens"] = reading.value("@response_length | data.max_response_length")
    unknown = next((value for value in values.values() if isinstance(value, Unknown)), None)
    return {name: value for name, value in values.items() if value is not None} if unknown is None else unknown


def flags_or_keywords(reading: Reading) -> Write:
    """Return a writer of keywords, of which none is given twice, or of flags, whose false is spelt `no_x: true`."""
    holds, entry = reading.holds, reading.spec.declared["write"]
    keywords = holds("keywords")
    others = {} if holds("reads_kwargs") is True else {"others": None}
    write = writer(reading, {**entry, **others})

    def written(name: str, value: Any) -> tuple[Edit, ...] | None:
        # In process, verl raises "Enable chunked prefill, max_num_batched_tokens ...".
        if (name, value) == ("enable_chunked_prefill", True) and holds("too_few_tokens") is not False:
            return None
        if value is False and keywords is not True:
            return write(f"no_{name}", True) if keywords is False else None
        return write(name, value)

    return written


def unread(reading: Reading) -> None:
    """Take the variables that the program gives its cluster, and add a sentence on what else it may set."""
    from rlaudit.configs.program import program_of, program_source
    from rlaudit.configs.ray_job import take_program_environment

    draft, command = reading.draft, reading.tree.command
    if (device := reading.node("trainer.device")) is not None:
        draft.device = by_file("trainer.device", device)
    if isinstance(reading.holds("in_process"), Unknown):
        draft.not_seen.append(
            "it is not known whether the engine is a server or in the trainer's process: v0.6 has both"
        )
    program = program_of(command) if command is not None else ""
    if program and not program.startswith(_OWN_MODULES):
        draft.not_seen.append(f"this file does not show what {program}, a program on top of {reading.spec.title}, sets")
    source = program_source(reading.source, command) if command is not None else None
    if source is not None:
        take_program_environment(draft, source)

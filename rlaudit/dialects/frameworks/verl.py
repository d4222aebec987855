"""What YAML cannot say of verl: what a copy hands on, and programs and engine classes on top of it."""

import re
from dataclasses import replace

from rlaudit.configs.draft import MANDATORY
from rlaudit.configs.framework_source.checkout import shown
from rlaudit.configs.syntax.node import entries
from rlaudit.dialects.reading import Reading
from rlaudit.unknown import Unknown

# The programs of verl: recipes (recipe.dapo.main_dapo) lie beside the package.
_OWN_MODULES = ("verl.", "recipe.", "rllm.")
_ENGINES = {"vllm", "vllm_spmd", MANDATORY}


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


def unread(reading: Reading) -> None:
    """Take the variables that the program gives its cluster, and add a sentence on what else it may set."""
    from rlaudit.configs.program import program_of, program_source
    from rlaudit.configs.ray_job import take_program_environment

    draft, command, name = reading.draft, reading.tree.command, reading.node("@name")
    if name is not None and isinstance(name.value, Unknown):
        draft.not_seen.append(f"the rollout engine: {name.value.reason}; it is read as vLLM's")
    elif name is not None and str(name.value) not in _ENGINES:
        draft.not_seen.append(f"the engine class of rollout.name {name.value}, which no release of verl has")
    if isinstance(reading.holds("in_process"), Unknown):
        draft.not_seen.append("whether the engine is a server or in the trainer's process: v0.6 knows both")
    program = program_of(command) if command is not None else ""
    if program and not program.startswith(_OWN_MODULES):
        draft.not_seen.append(f"what {program} sets by itself, a program on top of {reading.spec.title}")
    source = program_source(reading.source, command) if command is not None else None
    if source is not None:
        take_program_environment(draft, source)

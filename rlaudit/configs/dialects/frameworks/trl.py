"""What YAML cannot say of TRL: trainers of a project's own, a batch, and flags of its server that are vLLM's."""

import re
from math import prod
from typing import Any

from rlaudit.configs.dialects.clause import Clause, clauses
from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.program import program_source
from rlaudit.unknown import Unknown

_TRAINER = re.compile(r"\b\w+Trainer\b")
# Imported, or with the module's name in front.
_OF_TRL = re.compile(r"\b(?:trl|unsloth)\b[\w.]*(?:\.|\s+import\s*(?:\([^)]*|.*))\b\w+Trainer\b")


def own_trainer(reading: Reading) -> None:
    """Leave open what another trainer decides, if the program names trainers and takes none of them from TRL."""
    command = reading.tree.command
    program = reading.source if command is None else program_source(reading.source, command)
    text = program.text if program is not None and program.suffix == ".py" else ""
    script = str(command.words[reading.tree.options_at - 1].value) if command is not None else ""
    if (trainers := sorted(set(_TRAINER.findall(text)))) and not _OF_TRL.search(text):
        reading.trainer = f"{' or '.join(trainers)}, which the program does not take from TRL"
    elif script.endswith(".py"):
        what = f"this report assumes that {script.rpartition('/')[2]} trains with TRL's own trainer"
        reading.draft.not_seen.append(f"{what}; `rlaudit record` shows how the program builds its engine")


def batch(reading: Reading, _clause: Clause) -> Any:
    """Return how many sequences one generation of a colocated engine has."""
    parts = ["per_device_train_batch_size | 8", "vllm_tensor_parallel_size | 1"]
    if reading.tree.call != "online_dpo":
        parts.append("steps_per_generation | gradient_accumulation_steps | 1")
    sizes = [reading.value(part) for part in parts]
    unknown = next((size for size in sizes if isinstance(size, Unknown)), None)
    if unknown is None and all(isinstance(size, int) for size in sizes):
        return prod(sizes)
    of = "it is batch size * tensor parallel size * steps per generation, and one of these is not known"
    return Unknown(f"{of}: {unknown.reason}" if unknown is not None else of)


def further_flags(reading: Reading) -> None:
    """Hand flags that `trl vllm-serve` does not know on to `vllm serve`; TRL's older, own server stops at them."""
    engine = reading.spec.declared["engine"]
    declared = {clause["key"] for entry in engine.values() for clause in clauses(entry) if "key" in clause}
    is_own = reading.holds("release < 1.8.0") is True
    for name, node in reading.tree.root.items():
        if name in declared or name in {"model", "host", "port", "log_level", "config"}:
            continue
        if is_own:
            reading.draft.not_seen.append(f"--{name} was not read: `trl vllm-serve` does not accept it before TRL 1.11")
        else:
            reading.draft.engine.by_file(name, node, note="handed on to `vllm serve` from TRL 1.11 at the latest")

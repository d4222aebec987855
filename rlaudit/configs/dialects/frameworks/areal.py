"""What YAML cannot say of AReaL: variables in a list, and fields that spell a false."""

from typing import Any

from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.mapping_writer import one_mapping
from rlaudit.configs.syntax.node import entries
from rlaudit.configs.syntax.spelling import Write

# Fields of releases before the one that was read.
_OLDER = {"enable_prefix_caching", "enable_chunked_prefill", "swap_space", "num_scheduler_steps"}


def variables(reading: Reading) -> None:
    """Take the variables of the scheduling specification, which is a list."""
    spec = reading.node("rollout.scheduling_spec | actor.scheduling_spec")
    for task in spec.elements() if spec is not None else ():
        for name, node in entries(task.get("env_vars")):
            if name.startswith(("VLLM_", "NCCL_")):
                reading.draft.environment.by_file(name, node)


def fields(reading: Reading) -> Write:
    """Return a writer of the dataclass's fields, which writes a false only under a negated field."""
    names = reading.spec.keys_below("vllm") - _OLDER

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        negated = f"no_{name}"
        if negated in names and isinstance(value, bool):
            is_there = reading.code.checkout is None or reading.code.has({"areal/api/cli_args.py": f"{negated}: bool"})
            return (negated, "false" if value else "true") if is_there else None
        if name not in names or value is False or not isinstance(value, bool | int | float | str):
            return None
        return name, "true" if value is True else str(value)

    return one_mapping(reading.tree.own.get("vllm"), spell, reading.source.text)

"""The parameters of a worker's weights as they were read back, sorted: new, old, of no version, not read."""

from dataclasses import dataclass

from rlaudit.laboratory.studies.updates.records import ReadBack

HEAD = "lm_head.weight"


@dataclass(frozen=True)
class PartsRead:
    """The parameters of one read back, sorted. A parameter that is of no version as a whole counts by its tensors."""

    believed: str
    parameters: int
    # Parameters that a witness proves new and none old, and those by each of the witnesses.
    new: int
    new_by_bytes: int
    new_by_answer: int
    # Checkpoint names of tensors that did not get to the believed version.
    old: tuple[str, ...]
    # Tensors of no version beside others of known versions: memory that no update wrote, or a partial update.
    of_no_version: tuple[str, ...]
    # Parameters without an answer from either witness.
    unread: tuple[str, ...]
    # Old although their bytes are new.
    old_behind_new_bytes: tuple[str, ...]
    logits: str | None
    # Of those by their bytes, fused experts: they are read by sums, which any order of their elements has.
    new_by_sums: int = 0


def read_parts(read_back: ReadBack) -> PartsRead | None:
    """Sort the parameters of a read back; None if nothing could be read."""
    if not read_back.parameters:
        return None
    believed = read_back.believed
    old, unread, hidden, of_no_version = [], [], [], []
    new = by_bytes = by_answer = by_sums = 0
    for name, parameter in read_back.parameters.items():
        versions = [parameter[witness] for witness in ("bytes", "probe") if parameter[witness] is not None]
        parts = parameter.get("parts") or {}
        by_bytes += parameter["bytes"] == believed
        by_answer += parameter["probe"] == believed
        by_sums += parameter["bytes"] == believed and any(".experts." in tensor for tensor in parameter["tensors"])
        if parts:
            old += [tensor for tensor, version in parts.items() if version not in (None, believed)]
            of_no_version += [tensor for tensor, version in parts.items() if version is None]
        elif not versions:
            unread.append(name)
        elif any(version != believed for version in versions):
            old += list(parameter["tensors"]) or [name]
            if parameter["bytes"] == believed:
                hidden.append(name)
        else:
            new += 1
    if read_back.logits is not None and read_back.logits != believed and HEAD not in old:
        old.append(HEAD)
        hidden.append(HEAD)
    return PartsRead(
        believed,
        len(read_back.parameters),
        new,
        by_bytes,
        by_answer,
        tuple(old),
        tuple(of_no_version),
        tuple(unread),
        tuple(hidden),
        read_back.logits,
        by_sums,
    )

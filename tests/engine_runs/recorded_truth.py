"""Whether a recording holds what an engine returned."""

from collections import defaultdict
from collections.abc import Sequence as Several
from typing import Any

import numpy as np
from recorder_folder import Sequence, Written


def differences(returned: Several[dict[str, Any]], written: Written) -> list[str]:
    """Return what differs between the samples an engine returned and the sequences in a recording, by prompt.

    Ids and logprobs must be equal to the bit of float32. Of a request whose reader left, more may be recorded than was
    read, and its end is an abort.
    """
    recorded: dict[tuple[int, ...], list[Sequence]] = defaultdict(list)
    for sequence in written.sequences():
        recorded[sequence.prompt].append(sequence)
    found = []
    for sample in returned:
        candidates = recorded[tuple(sample["prompt"])]
        same = next((sequence for sequence in candidates if _is(sequence, sample)), None)
        if same is None:
            found.append(f"not recorded: {len(sample['ids'])} tokens, {sample['finish']}, left {sample['left']}")
        else:
            candidates.remove(same)
    left = [sequence for candidates in recorded.values() for sequence in candidates]
    return found + [f"not returned: {len(sequence.ids)} tokens, {sequence.finish}" for sequence in left]


def _is(sequence: Sequence, sample: dict[str, Any]) -> bool:
    length = len(sample["ids"]) if sample["left"] else len(sequence.ids)
    ends = sequence.finish == ("abort" if sample["left"] else sample["finish"])
    if not ends or list(sequence.ids[:length]) != sample["ids"]:
        return False
    if sample["logprobs"] is None:  # V0 has them all the same
        return True
    held = None if sequence.logprobs is None else np.float32(sequence.logprobs[:length])
    return held is not None and np.array_equal(held, np.float32(sample["logprobs"]))

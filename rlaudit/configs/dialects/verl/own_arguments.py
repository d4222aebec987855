"""What verl gives its engine by itself, and what empties the prefix cache: by release and kind of engine.

Where a config leaves several of them possible, a value is known that all of them agree on, and open otherwise. Read in
the wheels of 0.3.0.post1, 0.4.1, 0.5.0, 0.6.0, 0.6.1, 0.7.0, 0.8.0 and 0.9.0, workers/rollout/vllm_rollout.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.verl.release import NEWEST, OLDEST, Release
from rlaudit.configs.syntax.node import Unknown

IN_PROCESS_EXECUTOR = "external_launcher"
OF_VERL = Unknown("an executor class of verl's own")
OF_RANK = Unknown("the index of the data-parallel rank")
# No seed is passed.
NOTHING = "left to vLLM"


@dataclass(frozen=True)
class OwnArguments:
    """One kind of engine in a span of releases, last excluded. seed: where none is written. adds_index: whether the
    seed grows with the replica. sleeps: whether enable_sleep_mode is True whatever free_cache_engine says, which is its
    value otherwise. resets: whether the prefix cache is emptied between rollouts with free_cache_engine off as well.
    """

    first: Version
    last: Version
    in_process: bool
    seed: Any
    executor: str | Unknown
    sleeps: bool
    resets: bool
    adds_index: bool = False
    sets_graphs: bool = False


_V0_4, _V0_5, _V0_6, _V0_7, _V0_8, _V0_9 = (Version(f"0.{minor}.0") for minor in (4, 5, 6, 7, 8, 9))
# Who puts engines to sleep. All: verl 0.4.1 workers/sharding_manager/fsdp_vllm.py:215, trainer/ppo/ray_trainer.py:987
# and verl 0.7.0 experimental/agent_loop/agent_loop.py:958. Only with free_cache_engine: verl 0.5.0
# workers/sharding_manager/fsdp_vllm.py:239 and experimental/agent_loop/agent_loop.py:505, verl 0.6.1
# workers/fsdp_workers.py:736 and experimental/agent_loop/agent_loop.py:772. The cache is cleared with the weights by
# verl 0.8.0 workers/rollout/vllm_rollout/vllm_rollout.py:195, and by 0.9.0.
_ROWS = (
    OwnArguments(OLDEST, _V0_4, True, NOTHING, IN_PROCESS_EXECUTOR, True, True),
    OwnArguments(_V0_4, _V0_5, True, 0, IN_PROCESS_EXECUTOR, True, True),
    OwnArguments(_V0_4, _V0_5, False, OF_RANK, OF_VERL, True, True),
    OwnArguments(_V0_5, _V0_6, True, 0, IN_PROCESS_EXECUTOR, False, False),
    OwnArguments(_V0_5, _V0_6, False, 0, OF_VERL, False, False),
    OwnArguments(_V0_6, _V0_7, True, 0, IN_PROCESS_EXECUTOR, False, False),
    OwnArguments(_V0_6, _V0_7, False, 0, OF_VERL, True, False),
    OwnArguments(_V0_7, _V0_8, False, 0, OF_VERL, True, True),
    OwnArguments(_V0_8, _V0_9, False, 0, "mp", True, True, adds_index=True, sets_graphs=True),
    OwnArguments(_V0_9, NEWEST, False, 42, "mp", True, True, adds_index=True, sets_graphs=True),
)


def possible(release: Release) -> tuple[OwnArguments, ...]:
    """The rows that a config leaves possible."""
    return tuple(
        row for row in _ROWS
        if release.first < row.last and row.first <= release.last and release.in_process in (None, row.in_process)
    )  # fmt: skip


def agreed(release: Release, name: str, asked: Callable[[OwnArguments], Any]) -> Any:
    """What all possible rows say; Unknown, with what they say, where they differ or none is known."""
    values = list(dict.fromkeys(asked(row) for row in possible(release)))
    if len(values) == 1:
        return values[0]
    said = ", ".join(one.reason if isinstance(one, Unknown) else str(one) for one in values) or "not known here"
    return Unknown(f"verl's {name} is {said}, by release and kind of engine; {release.why()}")

"""A recording of a training: its requests to vLLM, which `recorded_config.py` reads."""

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.recorded_source import DIALECT_NAME, RecordedSource
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import RolloutConfig


def recognise(source: Source) -> bool:
    """Return whether it is a recording."""
    return isinstance(source, RecordedSource)


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every engine of the recording."""
    # Reading recordings costs start-up time that files should not pay.
    from rlaudit.configs.engine_arguments.recorded_config import recorded_configs

    assert isinstance(source, RecordedSource)
    return recorded_configs(source, vllm)


DIALECT = Dialect(DIALECT_NAME, "recording of a training", 0, recognise, read)

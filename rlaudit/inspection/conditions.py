"""What advisories ask of a config, and more than one does: each answers yes, no, or why the config does not tell."""

from collections.abc import Callable
from typing import Any

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.advisory import Condition
from rlaudit.inspection.audit import Side
from rlaudit.inspection.head_dtype import rollout_head_dtype
from rlaudit.inspection.returned_logprobs import Returned, returned_logprobs
from rlaudit.inspection.sampling import GREEDY_BELOW, temperature


def setting(name: str, says: str, *wanted: Any) -> Condition:
    """An engine argument, or a value that vLLM derives, as the engine runs it, is one of `wanted`."""
    return Condition(says, lambda side: _told(side.value(name), lambda value: value in wanted))


def _told(value: Any, holds: Callable[[Any], bool]) -> bool | Unknown:
    return value if isinstance(value, Unknown) else holds(value)


def _samples_away_from_one(side: Side) -> bool | Unknown:
    return _told(temperature(side), lambda heat: heat != 1 and heat >= GREEDY_BELOW)


def _half_precision_head(side: Side) -> bool | Unknown:
    return _told(rollout_head_dtype(side), lambda dtype: dtype != "float32")


def _returns_processed(side: Side) -> bool | Unknown:
    return _told(returned_logprobs(side), lambda returned: returned is Returned.PROCESSED)


SECOND_RUNNER = setting("model_runner", "Model Runner V2 runs", "V2")
ASYNC_SCHEDULING = setting("async_scheduling", "async scheduling is on", True)
PREFIX_CACHING = setting("enable_prefix_caching", "prefix caching is on", True)
PROCESSED_LOGPROBS = Condition("processed logprobs are returned", _returns_processed)
TEMPERATURE_NOT_ONE = Condition("the temperature is not 1", _samples_away_from_one)
HALF_PRECISION_HEAD = Condition("the output head runs in half precision", _half_precision_head)

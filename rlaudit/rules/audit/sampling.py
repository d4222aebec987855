"""How rollouts are sampled, as far as a config tells: temperature, filters, penalties.

A parameter that a config does not name is not neutral yet: requests set their own, and a server takes what they leave
out from the model's generation_config.json. Only an in-process `LLM` with explicit SamplingParams falls back to vLLM's
own defaults.
"""

from rlaudit.rules.audit.audit import FILTERS, Side
from rlaudit.unknown import Unknown
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")
GREEDY_BELOW = 1e-5  # vLLM's _SAMPLING_EPS.
HOTTEST = 1000.0  # A higher one is a slip of the pen, and no float16.


def temperature(side: Side) -> float | Unknown:
    """Return the sampling temperature of the rollouts; Unknown if the config leaves it open."""
    setting = side.config.sampling.get("temperature")
    if setting is None or setting.value is None:
        if side.config.offline and side.config.sampling:
            return 1.0
        return Unknown("the sampling temperature is not in this file")
    if isinstance(setting.value, Unknown):
        return setting.value
    if (
        isinstance(setting.value, bool)
        or not isinstance(setting.value, int | float)
        or not 0 <= setting.value < HOTTEST
    ):
        return Unknown(f"the sampling temperature is {setting.value!r}, which is no temperature")
    return float(setting.value)


def is_greedy(side: Side) -> bool:
    """Return whether temperature is known, and zero for vLLM."""
    value = temperature(side)
    return not isinstance(value, Unknown) and value < GREEDY_BELOW


def filters(side: Side) -> dict[str, float]:
    """Return top-p, top-k and min-p, if they are known and cut something off."""
    return _set_away_from_neutral(side, FILTERS)


def penalties(side: Side) -> dict[str, float]:
    """Return repetition, presence and frequency penalty, if they are known and change logits."""
    return _set_away_from_neutral(side, PENALTIES)


def unknown_among(side: Side, names: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the parameters that are set to unknown values, and every reason once."""
    values = {name: side.sampling(name) for name in names}
    reasons = {name: value.reason for name, value in values.items() if isinstance(value, Unknown)}
    return tuple(reasons), "; ".join(dict.fromkeys(reasons.values()))


def listed(parameters: dict[str, float]) -> str:
    """`top_p=0.9, top_k=50`, as messages print them."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def _set_away_from_neutral(side: Side, names: tuple[str, ...]) -> dict[str, float]:
    moved = {}
    for name in names:
        value = side.sampling(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and value != NEUTRAL_SAMPLING[name]:
            moved[name] = value
    return moved

"""The layer that a logged metric speaks of: a difference of logprobs of the first two, all else of the third."""

from rlaudit.curves.logged_metric import Group
from rlaudit.layers import Layer

_LOGPROBS = f"{Layer.SEMANTIC} or {Layer.INFERENCE_PATH}"


def layer_of(group: Group | None) -> str:
    """Return the layer, or a dash for a metric of no known meaning."""
    if group is None:
        return "-"
    return _LOGPROBS if group is Group.LOGPROBS else str(Layer.OBJECTIVE)

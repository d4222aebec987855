"""Callbacks of trainers. To import this module takes transformers, which nothing else of rlaudit imports."""

import logging
from typing import Any

from transformers import TrainerCallback

from rlaudit.curves.gate import Watched, parse_gate

_LOGGER = logging.getLogger("rlaudit")


class GateCallback(TrainerCallback):
    """Stop a training of transformers or TRL, or say so in the log, when a logged metric has left its gate for good.

        trainer = GRPOTrainer(..., callbacks=[GateCallback("sampling/sampling_logp_difference/mean<0.02")])

    gates: METRIC<LIMIT or METRIC>LIMIT, as `rlaudit curves --gate` takes them; metrics are named as the trainer logs
    them, and limits are in the metric's own unit.
    alpha: the chance of a false alarm in a whole training, of all gates together.
    stop: whether an alarm ends the training. It is a warning of the logger "rlaudit" in any case.
    Raises rlaudit.errors.UsageError for a gate of another form.
    Source: the sequential test of `rlaudit curves LOG --gate`, which may look after every step
    (`rlaudit/statistics/exceedance.py`).
    """

    def __init__(self, *gates: str, alpha: float = 0.01, stop: bool = True) -> None:
        parsed = [parse_gate(gate) for gate in gates]
        self.watched = [Watched(gate, gate.metric, alpha / len(parsed)) for gate in parsed]
        self.stop = stop

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        """Look at what was logged at a step, and return the trainer's control."""
        for watched in self.watched:
            value = (logs or {}).get(watched.key)
            if value is not None and watched.see(state.global_step, float(value)):
                _LOGGER.warning("%s: %s", watched.gate, watched.in_words())
                control.should_training_stop = self.stop or control.should_training_stop
        return control

"""TRL and Transformers: stop training, or say so, when a logged metric has left its gate for good.

    from callbacks.transformers import GateCallback

    trainer = GRPOTrainer(..., callbacks=[GateCallback("sampling/sampling_logp_difference/mean<0.02")])

The test of `rlaudit curves LOG --gate ...` after every step, inside the trainer. Metrics are named as the trainer
logs them.
"""

from transformers import TrainerCallback

from rlaudit.curves.gate import Watched, parse_gate


class GateCallback(TrainerCallback):
    """gates: as `rlaudit curves --gate` takes them. stop: whether an alarm ends the training."""

    def __init__(self, *gates, alpha=0.01, stop=True):
        parsed = [parse_gate(gate) for gate in gates]
        self.watched = [Watched(gate, gate.metric, alpha / len(parsed)) for gate in parsed]
        self.stop = stop

    def on_log(self, args, state, control, logs=None, **kwargs):
        for watched in self.watched:
            value = (logs or {}).get(watched.key)
            if value is not None and watched.see(state.global_step, float(value)):
                print(f"rlaudit: {watched.gate}: {watched.in_words()}")
                control.should_training_stop = self.stop or control.should_training_stop
        return control

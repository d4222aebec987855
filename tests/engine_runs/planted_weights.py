"""Updates of a real engine's weights, honest ones and planted faults, recorded one by one. Runs in its interpreter.

    planted_weights.py MODEL OUT

Each case below gets a recording of its own, OUT/CASE, of one process. The engine runs in this process.
"""

import contextlib
import os
import sys
from pathlib import Path

CASES = {}


def case(function):
    """A case: it changes weights, or sends some, between two requests."""
    CASES[function.__name__] = function
    return function


class Trained:
    """The weights of a trainer that moves a little with every step, and the model that it sends them to."""

    def __init__(self, model, folder):
        from safetensors.torch import load_file

        self.model, self.weights = model, load_file(Path(folder) / "model.safetensors")

    def train(self, rate=1e-2):
        import torch

        self.weights = {name: tensor + rate * torch.randn_like(tensor) for name, tensor in self.weights.items()}

    def send(self, at_once=False):
        pairs = list(self.weights.items())
        for some in [pairs] if at_once else [[pair] for pair in pairs]:
            self.model.load_weights(some)

    @contextlib.contextmanager
    def deaf(self, *endings):
        """Have parameters take nothing that is loaded."""
        from vllm.model_executor.parameter import BasevLLMParameter

        held = [one for name, one in self.model.named_parameters() if name.endswith(endings)]
        # vLLM's own parameters keep it under another name, behind a property.
        names = ["_weight_loader" if isinstance(one, BasevLLMParameter) else "weight_loader" for one in held]
        before = [one.__dict__.get(name) for one, name in zip(held, names)]  # noqa: B905 - an engine's Python
        for one, name in zip(held, names):  # noqa: B905
            one.__dict__[name] = lambda *_, **__: None
        yield
        for one, name, loader in zip(held, names, before):  # noqa: B905
            one.__dict__.pop(name) if loader is None else one.__dict__.update({name: loader})


@case
def honest(trained, generate):
    for at_once in (False, True):
        trained.train()
        trained.send(at_once)
        generate()


@case
def sent_twice(trained, generate):
    trained.train()
    for _ in range(2):
        trained.send()
        generate()


@case
def learning_rate_zero(trained, generate):
    for _ in range(2):
        trained.train(rate=0.0)
        trained.send()
        generate()


@case
def loads_nothing(trained, generate):
    trained.train()
    with trained.deaf("weight"):
        trained.send()
    generate()


@case
def one_tensor_skipped(trained, generate):
    trained.train()
    with trained.deaf("model.norm.weight"):
        trained.send()
    generate()


@case
def part_of_a_packed_layer_skipped(trained, generate):
    # The keys of every layer, which lie between queries and values.
    trained.send()
    generate()
    trained.train()
    keys = [(name, tensor) for name, tensor in trained.weights.items() if "k_proj" in name]
    for name, tensor in trained.weights.items():
        if "k_proj" not in name:
            trained.model.load_weights([(name, tensor)])
    with trained.deaf("qkv_proj.weight"):
        trained.model.load_weights(keys)
    generate()


@case
def changed_behind_its_back(trained, generate):
    import torch

    with torch.no_grad():
        next(iter(trained.model.parameters())).add_(0.1)
    generate()


def main():
    with contextlib.suppress(Exception):
        # Packed weights take no load_weights.
        import vllm._custom_ops as operations

        operations._supports_onednn = False
    import rlaudit_recorder
    import rlaudit_weights
    from vllm import LLM, SamplingParams

    model, out = sys.argv[1:]
    os.environ["RLAUDIT_RECORD"] = str(Path(out) / "start")
    llm = LLM(model=model, dtype="float32", enforce_eager=True, max_model_len=64, skip_tokenizer_init=True, seed=0)
    parameters = SamplingParams(max_tokens=2, logprobs=0, detokenize=False)

    def generate():
        rlaudit_weights.IDLE_SECONDS = 0.0  # as if a minute had passed
        llm.generate([{"prompt_token_ids": [1, 5, 6, 7]}], parameters, use_tqdm=False)

    def begin(name):
        """Begin a recording of its own."""
        rlaudit_recorder._end(rlaudit_recorder._process)
        os.environ["RLAUDIT_RECORD"] = str(Path(out) / name)
        served.values = None
        rlaudit_recorder._after_fork()

    generate()
    ((served_model, served),) = rlaudit_weights._served.items()
    trained = Trained(served_model, model)
    for name, run in CASES.items():
        begin(f"before {name}")
        trained.send()  # whatever the last case left
        generate()
        begin(name)
        generate()
        run(trained, generate)


if __name__ == "__main__":
    main()

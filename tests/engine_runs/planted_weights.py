"""Updates of a real engine's weights, honest ones and planted faults, recorded one by one. Runs in its interpreter.

    planted_weights.py MODEL OUT [CASE ...]

Each case below, or each that is named, gets a recording of its own, OUT/CASE, of one process. The engine runs in this
process; its head is its embedding. CPU builds refuse sleep mode: that is a stand-in of this file, which discards
weights as vLLM's does.
"""

import contextlib
import copy
import json
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

    def __init__(self, llm, model, folder):
        from safetensors.torch import load_file

        self.llm, self.model, self.folder = llm, model, Path(folder)
        self.weights = load_file(self.folder / "model.safetensors")

    def call(self, method, *arguments):
        """Call a method of the workers, as programs do that reach no model."""
        self.llm.collective_rpc(method, args=arguments)

    def train(self, rate=1e-3):
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


class Extension:
    """What trainers put into workers to take their weights. It is a base of the worker's class."""

    def update_weight(self, name):
        """OpenRLHF: one tensor a call, which comes by broadcast."""
        self.model_runner.model.load_weights(weights=[(name, sys.modules["__main__"].TRAINED.weights[name])])

    def receive_weight_update(self, names):
        """PipelineRL: all names in one call, one load a name."""
        for name in names:
            self.model_runner.model.load_weights([(name, sys.modules["__main__"].TRAINED.weights[name])])

    def update_weights_from_disk(self, path):
        """AReaL: a checkpoint that lies on the disk."""
        from safetensors.torch import load_file

        self.model_runner.model.load_weights(iter(load_file(path).items()))


# Honest ones, as frameworks make them --------------------------------------------------------------------------------


@case
def trl(trained, generate):
    # Past every RPC, parameter by parameter; then the cache is reset.
    for _ in range(2):
        trained.train()
        trained.send()
        trained.llm.reset_prefix_cache()
        generate()


@case
def trl_asleep(trained, generate):
    for _ in range(2):
        trained.call("sleep", 1)
        trained.call("wake_up", ["weights"])
        trained.train()
        trained.send()
        trained.call("wake_up", ["kv_cache"])
        generate()


@case
def verl(trained, generate):
    # Level 2, then buckets, each a generator.
    for _ in range(2):
        trained.call("sleep", 2)
        trained.train()
        trained.call("wake_up", ["weights"])
        pairs = list(trained.weights.items())
        for begin in range(0, len(pairs), 5):
            trained.model.load_weights(pair for pair in pairs[begin : begin + 5])
        trained.call("wake_up", ["kv_cache"])
        generate()


@case
def openrlhf(trained, generate):
    for _ in range(2):
        trained.train()
        for name in trained.weights:
            trained.call("update_weight", name)
        generate()


@case
def pipelinerl(trained, generate):
    # In the middle of requests.
    for _ in range(2):
        trained.train()
        generate(lambda: trained.call("receive_weight_update", list(trained.weights)))


@case
def areal(trained, generate):
    from safetensors.torch import save_file

    for step in range(2):
        trained.train()
        path = str(trained.folder / f"step-{step}.safetensors")
        save_file(trained.weights, path)
        trained.call("update_weights_from_disk", path)
        generate()


@case
def sleep_without_an_update(trained, generate):
    trained.call("sleep", 1)
    trained.call("wake_up")
    generate()


# Planted -------------------------------------------------------------------------------------------------------------


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
def tied_head_left_old(trained, generate):
    # As reloads leave it that make the embedding's parameter anew.
    head = trained.model.lm_head
    trained.model.lm_head = copy.deepcopy(head)
    trained.train()
    trained.send()
    generate()
    trained.model.lm_head = head


@case
def asleep_at_level_2_and_not_sent_again(trained, generate):
    trained.call("sleep", 2)
    trained.call("wake_up")
    generate()


@case
def changed_behind_its_back(trained, generate):
    import torch

    with torch.no_grad():
        next(iter(trained.model.parameters())).add_(0.1)
    generate()


def tied(model, folder):
    """Write the checkpoint with the head as its embedding."""
    from safetensors.torch import load_file, save_file

    folder.mkdir(parents=True)
    weights = load_file(Path(model) / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    configuration = json.loads((Path(model) / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**configuration, "tie_word_embeddings": True}))
    return str(folder)


def give_sleep():
    """Have CPU workers discard their weights as CuMemAllocator does at level 2, and keep them at level 1."""

    def sleep(self, level=1):
        parameters = list(self.model_runner.model.parameters())
        self.backup = [one.data.clone() for one in parameters] if level == 1 else None
        for one in parameters:
            one.data.zero_()

    def wake_up(self, tags=None):
        if self.backup is not None and (tags is None or "weights" in tags):
            for one, kept in zip(self.model_runner.model.parameters(), self.backup):  # noqa: B905
                one.data.copy_(kept)

    for module in ("vllm.worker.cpu_worker", "vllm.v1.worker.cpu_worker"):
        with contextlib.suppress(ImportError):
            worker = __import__(module, fromlist=["CPUWorker"]).CPUWorker
            worker.sleep, worker.wake_up = sleep, wake_up


def main():
    global TRAINED  # noqa: PLW0603 - the extension finds it here
    with contextlib.suppress(Exception):
        # Packed weights take no load_weights.
        import vllm._custom_ops as operations

        operations._supports_onednn = False
    import rlaudit_recorder
    import rlaudit_weights
    from vllm import LLM, SamplingParams

    out = Path(sys.argv[2])
    model = tied(sys.argv[1], out / "tied")
    os.environ["RLAUDIT_RECORD"] = str(out / "start")
    give_sleep()
    llm = LLM(
        model=model,
        dtype="float32",
        enforce_eager=True,
        max_model_len=64,
        skip_tokenizer_init=True,
        seed=0,
        worker_extension_cls="planted_weights.Extension",
    )
    parameters = SamplingParams(max_tokens=6, logprobs=0, detokenize=False, ignore_eos=True)

    def generate(between=None):
        """Sample. between: what is done after two steps."""
        rlaudit_weights.IDLE_SECONDS = 0.0  # as if a minute had passed
        engine = llm.llm_engine
        generate.number = getattr(generate, "number", 0) + 1
        engine.add_request(str(generate.number), {"prompt_token_ids": [1, 5, 6, 7]}, parameters)
        for step in range(100):
            if step == 2 and between is not None:
                between()
            if not engine.has_unfinished_requests():
                break
            engine.step()

    def begin(name):
        """Begin a recording of its own."""
        rlaudit_recorder._end(rlaudit_recorder._process)
        os.environ["RLAUDIT_RECORD"] = str(out / name)
        served.values = None
        rlaudit_recorder._after_fork()

    generate()
    ((served_model, served),) = rlaudit_weights._served.items()
    TRAINED = trained = Trained(llm, served_model, model)
    for name in sys.argv[3:] or CASES:
        begin(f"before {name}")
        trained.send()  # whatever the last case left
        generate()
        begin(name)
        generate()
        CASES[name](trained, generate)


if __name__ == "__main__":
    main()

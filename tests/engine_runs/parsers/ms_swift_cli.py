"""argv of `swift rlhf` or `swift rollout`, by ms-swift's own arguments; what it does with them then is left out."""

import dataclasses
import importlib
import json
import sys
from pathlib import Path

import transformers.training_args_seq2seq  # noqa: F401 - whole, before shells stand in for what it can do without
from stand_ins import ShellModule, stand_in_for_all_but
from transformers.hf_argparser import HfArgumentParser

stand_in_for_all_but("swift")
home = Path(importlib.util.find_spec("swift").origin).parent
# Of ms-swift itself: what models, data and trainers are made of. Of some, the file with arguments is read all the same.
ABSENT = (
    "agent_template", "callbacks", "dataset", "hub", "loss", "loss_scale", "metrics", "model", "optimizers",
    "ray_utils", "rlhf_trainers", "template", "trainers", "tuner_plugin", "tuners", "utils",
)  # fmt: skip
ARGUMENTS = ("trainers.arguments", "rlhf_trainers.args_mixin", "ray_utils.arguments")
for absent in ABSENT:
    sys.modules[f"swift.{absent}"] = shell = ShellModule(f"swift.{absent}")
    shell.__path__ = [str(home / absent)]
for file in ARGUMENTS:
    package = sys.modules[f"swift.{file.partition('.')[0]}"]
    for name, value in vars(importlib.import_module(f"swift.{file}")).items():
        if dataclasses.is_dataclass(value):
            setattr(package, name, value)

from swift.arguments import RLHFArguments, RolloutArguments  # noqa: E402

argv = json.loads(sys.argv[1])
kind = next(word for word in argv if word in {"rlhf", "rollout"})
arguments = {"rlhf": RLHFArguments, "rollout": RolloutArguments}[kind]
# After parsing it looks for the model, devices and data.
arguments.__post_init__ = lambda self: None
words = argv[argv.index(kind) + 1 :]
(read, rest) = HfArgumentParser([arguments]).parse_args_into_dataclasses(words, return_remaining_strings=True)
assert not rest, rest
print("PARSED" + json.dumps(dataclasses.asdict(read), default=str))

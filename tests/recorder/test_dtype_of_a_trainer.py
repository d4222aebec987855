"""Whether a trainer computes in the dtype of its parameters: known for a plain model alone."""

import sys
from pathlib import Path
from typing import Any

import pytest

from rlaudit.recording import shipped

sys.path.append(str(Path(shipped.__path__[0])))

import rlaudit_trainer


class Layer:
    def modules(self) -> list[Any]:
        return [self, Plain()]


class Plain:
    pass


def wrapped_by_accelerate() -> Any:
    layer = Layer()
    vars(layer)["_original_forward"] = print
    return layer


OTHERS = {
    "FSDP": type("FullyShardedDataParallel", (Layer,), {}),
    # fully_shard makes a class of each model's.
    "FSDP2": type("FSDPQwen2ForCausalLM", (Layer,), {}),
    "DeepSpeed": type("DeepSpeedEngine", (Layer,), {"__module__": "deepspeed.runtime.engine"}),
}


def test_a_plain_model_computes_in_the_dtype_of_its_parameters() -> None:
    assert rlaudit_trainer._casts(Layer()) is False


def test_autocast_around_the_forward_pass_is_seen() -> None:
    assert rlaudit_trainer._casts(wrapped_by_accelerate()) is True


@pytest.mark.parametrize("name", OTHERS)
def test_of_what_shards_or_casts_inside_it_is_unknown(name: str) -> None:
    assert rlaudit_trainer._casts(OTHERS[name]()) is None

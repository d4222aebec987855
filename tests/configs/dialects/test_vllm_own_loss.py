"""Programs that sample with vLLM, read the logprobs that they asked for, and train in the same file."""

import pytest
from reading import read_one

from rlaudit.configs.dialects.vllm.python import DIALECT
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.syntax.node import Unknown

PROGRAM = """\
from vllm import LLM, SamplingParams

llm = LLM("org/model")
params = SamplingParams(temperature=0.7, top_p=0.9, logprobs=1)

def sample(prompts):
    return [[one[token].logprob for token, one in zip(out.token_ids, out.logprobs)] for out in llm.generate(prompts)]

def train(model, batch, old):
    new = torch.log_softmax(model(batch).logits, dim=-1)
    ratio = torch.exp(new - old)
    loss = -ratio.mean()
    loss.backward()
    optimizer.step()
"""


def read(text: str = PROGRAM) -> RolloutConfig:
    return read_one(DIALECT, text, "0.18.1", "train.py")


def test_logprobs_that_a_training_program_reads_may_be_in_its_loss_and_it_is_not_said_that_they_are() -> None:
    config = read()
    assert config.has_trainer
    value = config.trainer["uses_rollout_logprobs"].value
    assert isinstance(value, Unknown) and "line 7" in value.reason and "line 11" in value.reason


def test_what_the_file_computes_itself_divides_by_no_temperature_and_cuts_nothing() -> None:
    config = read()
    assert config.says("divides_by_temperature") is False and config.says("replays_filters") is False


@pytest.mark.parametrize("heated", ["model(batch).logits / temperature", "model(batch).logits.div_(args.temperature)"])
def test_a_division_by_a_temperature_anywhere_leaves_it_open(heated: str) -> None:
    assert "divides_by_temperature" not in read(PROGRAM.replace("model(batch).logits", heated)).trainer


def test_logits_that_are_sorted_may_be_cut_as_the_sampler_cuts_them() -> None:
    text = PROGRAM.replace("    loss = ", "    best = torch.topk(new, 20)\n    loss = ")
    assert "replays_filters" not in read(text).trainer


@pytest.mark.parametrize(
    "text",
    [
        PROGRAM.replace(", logprobs=1", ""),
        PROGRAM.replace("    loss.backward()\n", ""),
        PROGRAM.replace("[one[token].logprob for token, one in zip(out.token_ids, out.logprobs)]", "out.token_ids"),
    ],
    ids=["asks for none", "does not train", "reads none"],
)
def test_nothing_is_said_of_a_program_that_does_not_ask_read_and_train(text: str) -> None:
    assert "uses_rollout_logprobs" not in read(text).trainer

"""A framework whose function has moved is named; one that was read is not."""

import pytest
from written_recording import WrittenProcess

from rlaudit.recording.closing import closing
from rlaudit.recording.recording import open_recording
from rlaudit.recording.shipped.rlaudit_frameworks import FUNCTIONS, MODULES

VERL = "verl.utils.torch_functional:logprobs_from_logits"


def said(tmp_path, hooked, scored=False):
    """What `record` says of frameworks at its end."""
    process = WrittenProcess(tmp_path)
    process.lines[0]["versions"]["verl"] = "0.9.1"
    process.put("hooks", hooked=hooked)
    if scored:
        process.stretches([(0, 0, [8, 9, 10], [-1.0] * 3)])
    sentences = closing(tmp_path, open_recording(process.write()), [], [])
    return [one for one in sentences if "no logprobs of a trainer" in one]


def test_a_framework_without_a_known_function_is_named_with_its_release(tmp_path):
    (sentence,) = said(tmp_path, ["verl"])
    assert sentence.startswith("verl 0.9.1 ") and "no function that is known" in sentence


def test_a_function_that_was_not_called_is_named(tmp_path):
    (sentence,) = said(tmp_path, ["verl", VERL])
    assert VERL in sentence


def test_a_framework_without_any_function_is_named(tmp_path):
    (sentence,) = said(tmp_path, ["pipelinerl.vllm1"])
    assert sentence.startswith("PipelineRL ")


@pytest.mark.parametrize(("hooked", "scored"), [([], False), (["verl", VERL], True)])
def test_nothing_is_said_of_what_was_read_or_never_imported(hooked, scored, tmp_path):
    assert said(tmp_path, hooked, scored) == []


def test_every_function_is_of_a_framework_that_is_noticed():
    assert {target.partition(".")[0] for target in FUNCTIONS} <= {module.partition(".")[0] for module in MODULES}

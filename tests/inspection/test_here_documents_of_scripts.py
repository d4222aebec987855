"""A config that a script writes itself is inspected at its lines in the script."""

from toy_dialect import PLAIN, Desk


def test_a_trainers_config_in_a_here_document_is_inspected_where_it_stands(desk: Desk) -> None:
    text = f"#!/bin/bash\n# vllm\ncat > toy.yaml <<EOF\nname: x\n{PLAIN}EOF\nexport VLLM_USE_V1=0\npython train.py\n"
    desk.file("run.sh", text)
    assert desk.rules("run.sh") == ["6 toy-raw", "9 toy-warm"]
    desk.inspect("run.sh")
    assert "the options of the command that reads this here-document" in desk.out
    assert "VLLM_USE_V1" in desk.out or "V0" in desk.out

"""Whether the same tokens go in, from what each environment made of the same inputs."""

import pytest

from rlaudit.diagnosis.inputs import judge_inputs, verdicts_on
from rlaudit.laboratory.rendered_inputs import Rendered, RenderedInputs, chat_shapes
from rlaudit.layers import Verdict
from rlaudit.severity import FailFor

PLAIN = Rendered((1, 7, 8, 2), "<s>7 * 6</s>")
WITHOUT_SPACES = Rendered((1, 9, 2), "<s>7*6</s>")
REFUSED = Rendered(error="TemplateError: System role not supported")


def side(name: str, prompt: Rendered = PLAIN, shape: Rendered = PLAIN, release: str = "4.57.6") -> RenderedInputs:
    """One prompt and one shape."""
    return RenderedInputs(name, {"transformers": release}, {"prompt 1": prompt}, {"a system message": shape})


def test_the_same_tokens_on_all_sides_match() -> None:
    inputs, not_seen = judge_inputs([side("the trainer"), side("vLLM 0.8.5"), side("vLLM 0.18.1")])
    assert (inputs.verdict, inputs.compared, not_seen) == (Verdict.MATCH, 2, [])
    assert inputs.because == "the same tokens on all sides for 1 prompt and 1 conversation"


def test_the_first_token_that_differs_is_shown_with_the_text_around_it() -> None:
    inputs, _ = judge_inputs([side("the trainer"), side("vLLM 0.32.0", WITHOUT_SPACES, release="5.19.0")])
    (one,) = inputs.different
    assert (one.name, one.side, one.first) == ("prompt 1", "vLLM 0.32.0", 1)
    assert (one.trainer_ids, one.engine_ids) == ((7, 8, 2), (9, 2))
    assert (one.trainer, one.engine) == ("'<s>7 * 6</s>'", "'<s>7*6</s>'")
    assert inputs.because == (
        "vLLM 0.32.0 (transformers 5.19.0) makes other tokens of 1 prompt than the trainer (transformers 4.57.6)"
    )


def test_a_template_that_refuses_on_one_side_only_differs() -> None:
    inputs, _ = judge_inputs([side("the trainer"), side("vLLM 0.8.5", shape=REFUSED)])
    (one,) = inputs.different
    assert (one.name, one.engine) == ("a system message", REFUSED.error)


def test_what_every_template_refuses_in_whatever_words_is_the_same() -> None:
    other_words = Rendered(error="UndefinedError: system")
    inputs, _ = judge_inputs([side("the trainer", shape=REFUSED), side("vLLM 0.8.5", shape=other_words)])
    assert inputs.verdict is Verdict.MATCH


@pytest.mark.parametrize(
    ("today", "moved", "for_move"), [(WITHOUT_SPACES, False, []), (PLAIN, True, [Verdict.MISMATCH])]
)
def test_a_move_fails_only_on_what_differs_between_its_engines(
    today: Rendered, moved: bool, for_move: list[Verdict]
) -> None:
    inputs, _ = judge_inputs(
        [side("the trainer"), side("vLLM 0.18.1", today), side("vLLM 0.32.0", WITHOUT_SPACES, release="5.19.0")]
    )
    assert inputs.moved is moved
    assert verdicts_on(inputs, FailFor.MOVE) == for_move
    assert verdicts_on(inputs, FailFor.STATE) == [Verdict.MISMATCH]


def test_an_environment_that_could_render_nothing_is_named_and_decides_nothing() -> None:
    failed = RenderedInputs("vLLM 0.8.5", failure="load: ValueError: no tokenizer")
    inputs, not_seen = judge_inputs([side("the trainer"), failed])
    assert inputs.verdict is Verdict.NOT_TESTED
    assert not_seen == [
        "prompts as the transformers of vLLM 0.8.5 render them were not seen: load: ValueError: no tokenizer"
    ]
    assert verdicts_on(inputs, FailFor.STATE) == []


def test_prompts_that_are_token_ids_are_rendered_by_none() -> None:
    inputs, not_seen = judge_inputs([RenderedInputs("the trainer")])
    assert (inputs.verdict, inputs.compared, not_seen) == (Verdict.NOT_TESTED, 0, [])


def test_every_shape_is_a_conversation() -> None:
    for shape in chat_shapes().values():
        assert {"messages"} <= shape.keys() <= {"messages", "tools", "add_generation_prompt", "continue_final_message"}
        assert all({"role", "content"} <= message.keys() for message in shape["messages"])

"""A probe says of servers whose report and draws are known what they are."""

from collections.abc import Sequence
from typing import Any

import pytest
from toy_server import FILTERS, NEUTRAL, Toy, serving

import rlaudit.probe.course
from rlaudit.meaning.candidates import Semantics
from rlaudit.probe.budget import Budget
from rlaudit.probe.checked import checks
from rlaudit.probe.course import Probed, probe
from rlaudit.probe.move import differences
from rlaudit.probe.server import Server

ALL = tuple(NEUTRAL)
PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")


KNOWN: dict[str, Probed] = {}


def probed(toy: Toy, *asked: str, requests: int = 400) -> Probed:
    """Return what a probe of a toy says; toys that are alike are probed once.

    asked: the questions that are not about one parameter.
    """
    key = f"{toy} {asked} {requests}"
    if key not in KNOWN:
        wanted = tuple(check for check in checks() if check.name in asked)
        with pytest.MonkeyPatch.context() as patch, serving(toy) as address:
            patch.setattr(rlaudit.probe.course, "checks", lambda: wanted)
            with Server(address, Budget(requests, 60_000)) as server:
                KNOWN[key] = probe(server, None, lambda text: None)
    return KNOWN[key]


def reports(result: Probed) -> dict[str, bool | None]:
    return {each.name: each.in_report for each in result.parameters}


def draws(result: Probed) -> dict[str, bool | None]:
    return {each.name: each.in_draws for each in result.parameters}


def answer(result: Probed, name: str) -> Any:
    return next(answered.checked for answered in result.checks if answered.name == name)


@pytest.mark.parametrize(
    "left_out",
    [(), ALL, ("temperature",), FILTERS, (*PENALTIES, "logit_bias"), ("temperature", "top_p", "min_p")],
    ids=lambda names: "-".join(names) or "processed",
)
def test_each_parameter_is_found_in_the_report_or_left_out_of_it_and_every_draw_follows(
    left_out: Sequence[str],
) -> None:
    result = probed(Toy(leaves_out=left_out), "draws", "together")
    assert reports(result) == {name: name not in left_out for name in ALL}
    assert set(draws(result).values()) <= {True, None}
    assert draws(result)["temperature"] is True
    assert answer(result, "draws").found is False
    assert answer(result, "together").found is False


def test_what_a_router_strips_is_neither_in_the_report_nor_in_the_draws() -> None:
    result = probed(Toy(strips=("top_k", "temperature")))
    assert (reports(result)["top_k"], draws(result)["top_k"]) == (False, False)
    assert (reports(result)["temperature"], draws(result)["temperature"]) == (False, False)
    assert reports(result)["top_p"] is True


def test_the_noise_of_a_server_is_no_change_of_meaning() -> None:
    for left_out in ((), ALL):
        result = probed(Toy(leaves_out=left_out, noise=0.01))
        expected = left_out == ()
        assert set(reports(result).values()) <= {expected, None}
        assert reports(result)["temperature"] is expected


def test_a_chat_that_lists_five_logprobs_as_texts_tells_what_it_can() -> None:
    toy = Toy(chat_only=True, most_logprobs=5, refuses=("top_k", "return_tokens_as_token_ids"), leaves_out=ALL)
    result = probed(toy)
    assert result.who.endpoint == "v1/chat/completions"
    assert result.who.logprobs == 5
    assert reports(result)["temperature"] is False
    assert reports(result)["top_k"] is None
    assert "refuses" in result.parameter("top_k").because
    assert reports(result)["logit_bias"] is None
    # What one of two servers does not tell is open, and no change.
    changed, open_on_one = differences(probed(Toy(), "left-out", "draws"), result)
    assert changed == ["temperature", "top_p", "min_p", *PENALTIES]
    assert open_on_one == ["top_k", "logit_bias"]


@pytest.mark.parametrize("left_out", [(), ALL], ids=["processed", "raw"])
def test_defaults_that_a_server_puts_in_are_named_with_their_values(left_out: Sequence[str]) -> None:
    result = probed(Toy(leaves_out=left_out, defaults={"temperature": 0.6, "top_k": 10}), "left-out", "draws")
    said = answer(result, "left-out")
    assert said.found
    assert "temperature about 0.6" in said.answer
    assert "top_k about 10" in said.answer
    assert "presence" not in said.answer.partition(":")[0]
    # What was asked for was written out, so nothing else is wrong.
    assert answer(result, "draws").found is False


def test_a_server_without_defaults_puts_nothing_in() -> None:
    for left_out in ((), ALL):
        said = answer(probed(Toy(leaves_out=left_out), "left-out"), "left-out")
        assert said.found is False
    assert "would not have shown" in said.answer


def test_sampling_that_no_parameter_asks_for_shows_in_the_draws() -> None:
    result = probed(Toy(sharpened=0.8), "draws")
    assert answer(result, "draws").found


def test_a_stale_cache_shows_as_a_difference_of_cold_and_warm() -> None:
    said = answer(probed(Toy(cached_off=0.1), "cache-and-crowd"), "cache-and-crowd")
    assert said.found
    assert said.figures["cold to warm, nats"] == pytest.approx(0.1, abs=0.02)


def test_probes_of_a_server_against_itself_find_nothing() -> None:
    before, *others = (probed(Toy(noise=0.01, seed=seed)) for seed in (7, 0, 1))
    assert [differences(before, after) for after in others] == [([], [])] * 2


def test_a_budget_that_is_spent_leaves_what_is_known() -> None:
    result = probed(Toy(), requests=60)
    assert result.requests == 60
    assert "budget" in (result.stopped or "")
    assert result.parameters


def test_reported_is_the_request_without_what_the_server_leaves_out() -> None:
    from rlaudit.probe.judge import reported_of

    result = probed(Toy(leaves_out=("temperature",)), "draws", "together")
    assert reported_of(result, Semantics(temperature=0.7, top_p=0.9)) == Semantics(top_p=0.9)

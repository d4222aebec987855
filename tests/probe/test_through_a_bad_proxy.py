"""What a probe knows through a proxy that strips, caps, mixes, delays and loses, and what it says is not known."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from bad_proxy import proxied
from toy_server import NEUTRAL, Toy, serving

from rlaudit.probe.budget import Budget
from rlaudit.probe.course import Probed, probe
from rlaudit.probe.judge import answer_of
from rlaudit.probe.server import Server

RAW = tuple(NEUTRAL)


@contextmanager
def behind(*toys: Toy, **proxy: Any) -> Iterator[str]:
    with ExitStack() as stack:
        replicas = [stack.enter_context(serving(toy)) for toy in toys]
        yield stack.enter_context(proxied(*replicas, **proxy))


def probed(*toys: Toy, **proxy: Any) -> Probed:
    with behind(*toys, **proxy) as address, Server(address, Budget(400, 60_000)) as server:
        return probe(server, None, lambda text: None)


def reports(result: Probed) -> dict[str, bool | None]:
    return {parameter.name: parameter.in_report for parameter in result.parameters}


def draws(result: Probed) -> dict[str, bool | None]:
    return {parameter.name: parameter.in_draws for parameter in result.parameters}


def test_fields_that_are_stripped_are_named_and_all_others_told() -> None:
    result = probed(Toy(), strips=("top_k", "logit_bias", "return_tokens_as_token_ids"))
    assert reports(result) == {name: {"top_k": False, "logit_bias": None}.get(name, True) for name in RAW}
    assert draws(result)["top_k"] is False
    assert any("does not apply top_k" in line for line in answer_of(result))
    assert "token ids" in result.parameter("logit_bias").because


@pytest.mark.parametrize("left_out", [(), RAW], ids=["processed", "raw"])
def test_five_logprobs_of_twenty_suffice_and_are_counted(left_out: Any) -> None:
    result = probed(Toy(leaves_out=left_out), most_logprobs=5)
    assert result.who.logprobs == 5
    assert set(reports(result).values()) == {not left_out}


def test_replicas_with_other_reports_are_named_and_nothing_is_told_of_either() -> None:
    result = probed(Toy(), Toy(leaves_out=RAW))
    assert set(reports(result).values()) == {None}
    assert draws(result)["temperature"] is True
    (line,) = [line for line in answer_of(result) if "several servers" in line]
    assert "temperature" in line


def test_one_replica_that_puts_in_a_default_is_found() -> None:
    result = probed(Toy(), Toy(defaults={"temperature": 0.6}))
    assert set(reports(result).values()) == {True}
    (said,) = [answered.checked for answered in result.checks if answered.name == "left-out"]
    assert said.found
    assert "temperature" in said.answer


def test_a_connection_lost_in_twenty_and_late_answers_change_nothing() -> None:
    result = probed(Toy(leaves_out=RAW), loses_every=20, seconds=0.005)
    assert result.stopped is None
    assert reports(result) == dict.fromkeys(RAW, False)


def test_a_server_that_is_lost_for_good_leaves_what_is_known() -> None:
    from rlaudit.errors import NotFinished

    with pytest.raises(NotFinished, match="cannot be reached"):
        probed(Toy(), loses_every=1)


def test_everything_at_once_tells_no_lie(tmp_path: Path) -> None:
    result = probed(
        Toy(),
        Toy(leaves_out=("top_p",)),
        strips=("min_p", "return_tokens_as_token_ids"),
        most_logprobs=5,
        loses_every=20,
        seconds=0.005,
        hides=("/version", "/tokenize", "/metrics"),
    )
    assert result.who.release is None
    assert reports(result)["temperature"] is True
    assert reports(result)["top_p"] is None
    assert (reports(result)["min_p"], draws(result)["min_p"]) == (False, False)
    assert reports(result)["logit_bias"] is None

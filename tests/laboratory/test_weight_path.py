"""Which path loads what a transport brings, and how what ran is said."""

import pytest

from rlaudit.laboratory.weight_path import Transport, in_words, loading_path


@pytest.mark.parametrize(
    ("transport", "kind", "device", "path"),
    [
        ("disk", None, "cpu", "reload_weights"),
        ("disk", "V0", "cpu", "load_weights"),
        ("broadcast", "V1", "cuda", "load_weights"),
        ("broadcast", "V1", "cpu", "reload_from_iterator"),
        ("broadcast", "V0", "cpu", "load_weights"),
    ],
)
def test_the_usual_path_is_that_of_the_transport_the_engine_and_the_device(
    transport: Transport, kind: str | None, device: str, path: str
) -> None:
    assert loading_path(None, transport, kind, device) == path


def test_a_path_that_is_asked_for_is_taken() -> None:
    assert loading_path("reload_from_iterator", "broadcast", "V1", "cuda") == "reload_from_iterator"


def test_what_ran_is_said_with_what_it_went_over_and_why_not_over_nccl() -> None:
    over = {"name": "broadcast", "backend": "gloo", "because": "the engine is on a CPU"}
    said = in_words("load_weights", over)
    assert said.startswith("broadcast, parameter by parameter, over gloo, not NCCL: the engine is")
    assert said.endswith("; given to model.load_weights")
    over = {"name": "broadcast", "backend": "nccl", "because": None}
    assert "over NCCL; given to the engine's reload_weights as tensors" in in_words("reload_from_iterator", over)

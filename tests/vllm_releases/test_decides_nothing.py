"""Settings that decide nothing: each is one that vLLM has, or derives."""

from rlaudit.vllm.decides_nothing import DECIDES_NOTHING
from rlaudit.vllm.lifetimes import lifetime
from rlaudit.vllm.resolve import resolution_rules


def test_every_name_is_a_setting_of_vllm_with_a_reason() -> None:
    for name, why in DECIDES_NOTHING.items():
        assert lifetime("engine", name) is not None or name in resolution_rules(), name
        assert why

import pytest

from rlaudit.configs.engine_names import affirmed, canonical, dashed


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("--enable-prefix-caching", "enable_prefix_caching"),
        ("enable_prefix_caching", "enable_prefix_caching"),
        ("enablePrefixCaching", "enable_prefix_caching"),
        ("maxModelLen", "max_model_len"),
        ("enableLoRA", "enable_lora"),
        ("gpuMemoryUtilization", "gpu_memory_utilization"),
        ("-tp", "tensor_parallel_size"),
        ("-q", "quantization"),
        ("q", "q"),
        ("dtype", "dtype"),
        ("--no-enable-prefix-caching", "no_enable_prefix_caching"),
        ("--compilation-config.pass_config.x-y", "compilation_config.pass_config.x-y"),
        ("VLLM_USE_V1", "VLLM_USE_V1"),
    ],
)
def test_every_spelling_leads_to_one_name(spelling: str, name: str) -> None:
    assert canonical(spelling) == name


def test_a_negation_is_told_apart_from_the_name() -> None:
    assert affirmed("no_enable_prefix_caching") == ("enable_prefix_caching", True)
    assert affirmed("node_rank") == ("node_rank", False)
    assert dashed("enable_prefix_caching") == "enable-prefix-caching"

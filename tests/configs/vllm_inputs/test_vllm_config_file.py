import pytest
from reading import read_one, rewritten, source_of

from rlaudit.configs.readers.config_file import DIALECT
from rlaudit.settings.rollout_config import Loss, RolloutConfig
from rlaudit.unknown import Unknown

DASHED = "tensor-parallel-size: 2  # gpus\nenable-prefix-caching: false\nmax-num-seqs: 64\n"
UNDERSCORED = DASHED.replace("-", "_")


def read(text: str, vllm: str) -> RolloutConfig:
    return read_one(DIALECT, text, vllm, "serve.yaml")


@pytest.mark.parametrize(
    ("text", "vllm", "arrives"),
    [
        (DASHED, "0.8.5", False), (DASHED, "0.18.1", False), (DASHED, "0.27.1", False), (DASHED, "0.28.0", True),
        (DASHED, "0.33.0", True), (UNDERSCORED, "0.18.1", False), (UNDERSCORED, "0.28.0", False),
    ],
)  # fmt: skip
def test_a_written_false_arrives_from_0_28_on_and_only_with_dashes(text: str, vllm: str, arrives: bool) -> None:
    config = read(text, vllm)
    dropped = [(lost.name, lost.loss) for lost in config.lost]
    if arrives:
        assert config.engine["enable_prefix_caching"].value is False and not dropped
    else:
        assert "enable_prefix_caching" not in config.engine
        assert dropped == [("enable_prefix_caching", Loss.FALSE_DROPPED)]


def test_a_negative_key_works_in_every_release_and_quoted_false_is_an_error() -> None:
    for vllm in ("0.8.5", "0.18.1", "0.32.0"):
        config = read("no-enable-prefix-caching: true\nmax-num-seqs: 1\n", vllm)
        assert config.engine["enable_prefix_caching"].value is False and not config.lost
        config = read("enable-prefix-caching: 'false'\nmax-num-seqs: 1\n", vllm)
        assert isinstance(config.engine["enable_prefix_caching"].value, Unknown)
        assert [lost.loss for lost in config.lost] == [Loss.REFUSED]


@pytest.mark.parametrize(("vllm", "known"), [("0.10.1", False), ("0.10.2", True), ("0.18.1", True)])
def test_lists_arrive_as_words_from_0_10_2_on(vllm: str, known: bool) -> None:
    value = read("served-model-name: [a, b]\nmax-num-seqs: 1\n", vllm).engine["served_model_name"].value
    assert (value == ["a", "b"]) if known else isinstance(value, Unknown)


@pytest.mark.parametrize(("vllm", "known"), [("0.15.1", False), ("0.16.0", True), ("0.32.0", True)])
def test_mappings_arrive_as_json_from_0_16_0_on(vllm: str, known: bool) -> None:
    value = read("hf-overrides: {head_dtype: float32}\nmax-num-seqs: 1\n", vllm).engine["hf_overrides"].value
    assert (value == {"head_dtype": "float32"}) if known else isinstance(value, Unknown)


def test_front_end_keys_are_no_settings_and_unknown_ones_are_lost() -> None:
    config = read("port: 1\nhost: x\nmodel: org/m\nmax_num_seqs: 1\nseeds: 2\nallow_credentials: false\n", "0.18.1")
    assert set(config.engine) == {"max_num_seqs"} and config.model is not None and config.model.value == "org/m"
    assert [(lost.name, lost.loss) for lost in config.lost] == [("seeds", Loss.REFUSED)]


@pytest.mark.parametrize(
    "text",
    [
        "model: x\nseed: 1\ndtype: auto\n", "actor: {a: 1}\nmax_num_seqs: 1\nb: 2\nc: 3\n", "- tensor_parallel_size\n",
        "trust-remote-code: true\nattention-backend: fa3\nport: 1\nload-format: auto\ncontext-length: 9\n",
        "attention-backend: fa3\ntp: 8\n", "tensor_parallel_size: 1\n---\ntensor_parallel_size: 1\n", "", "a: [\n",
    ],
)  # fmt: skip
def test_files_of_other_programs_are_not_taken_for_vllms(text: str) -> None:
    assert not DIALECT.recognise(source_of(text))


@pytest.mark.parametrize(
    ("text", "key"), [(DASHED, "no-enable-prefix-caching"), (UNDERSCORED, "no_enable_prefix_caching")]
)
def test_what_is_written_arrives_in_every_release(text: str, key: str) -> None:
    for vllm in ("0.8.5", "0.18.1", "0.32.0"):
        edited = rewritten(read(text, vllm), text, "enable_prefix_caching", False)
        assert edited == text.replace(text.split("\n")[1], f"{key}: true")
        again = read(edited, vllm)
        assert again.engine["enable_prefix_caching"].value is False
        assert again.write("enable_prefix_caching", False) == ()


def test_an_argument_that_the_release_does_not_have_is_not_written() -> None:
    assert read(DASHED, "0.8.5").write("logprobs_mode", "processed_logprobs") is None
    assert rewritten(read(DASHED, "0.18.1"), DASHED, "logprobs_mode", "processed_logprobs").endswith(
        "max-num-seqs: 64\nlogprobs-mode: processed_logprobs\n"
    )


def test_a_mapping_is_not_written_as_another_program_may_make_words_of_the_file() -> None:
    assert read(DASHED, "0.18.1").write("compilation_config", {"cudagraph_mode": "NONE"}) is None


def test_a_file_with_a_null_is_another_programs() -> None:
    text = "tensor_parallel_size: 1\ngpu_memory_utilization: 0.8\nmax_model_len: {}\n"
    assert DIALECT.recognise(source_of(text.format("512"), "server.yaml"))
    assert not DIALECT.recognise(source_of(text.format("null"), "server.yaml"))

"""A project's own config with mappings of vLLM's engine arguments, which no framework's dialect reads."""

from packaging.version import Version
from reading import source_of

from rlaudit.configs.readers.mapping import DIALECT
from rlaudit.inspection.read_configs import known_dialects, recognise


def test_a_file_that_another_dialect_reads_is_left_to_it() -> None:
    served = source_of("gpu_memory_utilization: 0.9\nmax_num_seqs: 8\nmax_model_len: 99\nserved_model_name: vllm-one\n")
    assert DIALECT.recognise(served)
    recognised, bugs = recognise(served, known_dialects())
    assert [one.name for one in recognised] == ["vllm-config-file"] and bugs == ()


def test_a_file_that_repeats_an_engine_many_times_over_is_read_up_to_a_limit() -> None:
    one = "  - {kind: vllm, gpu_memory_utilization: 0.5, max_num_seqs: 2, max_model_len: 3}\n"
    source = source_of(f"roles:\n{one * 200}")
    assert DIALECT.recognise(source)
    assert 1 < len(DIALECT.read(source, Version("0.18.1"))) <= 20

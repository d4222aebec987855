from pathlib import Path

import pytest

from rlaudit.engines.cells.launch import read_log, root_cause, says_out_of_memory

ENGINE_CORE = """\
INFO 11-21 03:38:09 [core.py:58] Initializing a V1 LLM engine
(EngineCore pid=71) ERROR 11-21 03:38:11 [core.py:1100] EngineCore failed to start.
(EngineCore pid=71) ERROR 11-21 03:38:11 [core.py:1100] Traceback (most recent call last):
(EngineCore pid=71) ERROR 11-21 03:38:11 [core.py:1100]   File "vllm/v1/engine/core.py", line 1090, in run_engine_core
(EngineCore pid=71) ERROR 11-21 03:38:11 [core.py:1100] ValueError: No available memory for the cache blocks.
(EngineCore pid=71) Process EngineCore:
(EngineCore pid=71) ValueError: No available memory for the cache blocks.
Traceback (most recent call last):
  File "vllm/entrypoints/llm.py", line 300, in __init__
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
WITHOUT_PREFIX = """\
ERROR 11-21 03:38:11 [core.py:396] Traceback (most recent call last):
ERROR 11-21 03:38:11 [core.py:396] KeyError: 'layers.0.weight'
RuntimeError: Engine core initialization failed. See root cause above.
"""
WORKER_OF_SEVERAL = """\
(Worker_TP1 pid=9) ERROR 11-21 03:38:11 [multiproc_executor.py:8] torch.OutOfMemoryError: CUDA out of memory.
(EngineCore_DP0 pid=7) ERROR 11-21 03:38:12 [core.py:1] Exception: WorkerProc initialization failed due to an exception
RuntimeError: Engine core initialization failed. See root cause above.
"""
PLAIN_TRACEBACK = """\
Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'first'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
OSError: the last one is what stopped it
"""
ONLY_POINTERS = "RuntimeError: Engine core initialization failed. See root cause above.\n"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (ENGINE_CORE, "ValueError: No available memory for the cache blocks."),
        (WITHOUT_PREFIX, "KeyError: 'layers.0.weight'"),
        (WORKER_OF_SEVERAL, "torch.OutOfMemoryError: CUDA out of memory."),
        (PLAIN_TRACEBACK, "OSError: the last one is what stopped it"),
        (ONLY_POINTERS, None),
        ("INFO 11-21 03:38:09 [llm.py:1] all is well\n", None),
        ("", None),
    ],
)
def test_the_cause_is_the_first_exception_of_an_engine_process_else_the_last_that_points_nowhere(
    log: str, cause: str | None
) -> None:
    assert root_cause(log.splitlines()) == cause


def test_colours_are_not_part_of_a_log_and_undecodable_bytes_do_not_hide_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(
        b"\xff\xfe\n\x1b[1;36m(EngineCore pid=3)\x1b[0;0m ERROR 11-21 03:38:11 [core.py:1] ValueError: bad size\n"
    )
    assert root_cause(read_log(path)) == "ValueError: bad size"


def test_a_cell_that_never_wrote_a_log_has_no_lines(tmp_path: Path) -> None:
    assert read_log(tmp_path / "log.txt") == []


@pytest.mark.parametrize(
    ("words", "exhausted"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", True),
        ("ValueError: No available memory for the cache blocks.", True),
        ("ValueError: Free memory on device is less than desired GPU memory utilization", True),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory", True),
        ("ValueError: the block size 17 is not a multiple of 16", False),
    ],
)
def test_exhausted_memory_is_told_from_other_causes(words: str, exhausted: bool) -> None:
    assert says_out_of_memory(words) is exhausted

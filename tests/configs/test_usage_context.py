"""Who makes the engine, and the batch sizes that vLLM takes by it."""

from dataclasses import replace

import pytest
from packaging.version import Version

from rlaudit.configs.readers.python import DIALECT, makes_bare_engine
from rlaudit.configs.source import Source
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import machine_named
from rlaudit.vllm.resolve import resolve


@pytest.mark.parametrize(("text", "bare"), [
    ("engine = AsyncLLM.from_engine_args(args)", True),
    ("engine = AsyncLLMEngine.from_vllm_config(config)", True),
    ("engine = LLMEngine(vllm_config=config)", True),
    ("engine = AsyncLLM.from_engine_args(args, usage_context=UsageContext.OPENAI_API_SERVER)", False),
    ("async with build_async_engine_client(args) as engine: AsyncLLM.from_engine_args(args)", False),
    ("llm = LLM(model='m')", False),
    ("args = EngineArgs(model='m')", False),
])  # fmt: skip
def test_a_program_makes_the_engine_itself_or_leaves_it_to_vllm(text: str, bare: bool) -> None:
    assert makes_bare_engine(text) is bare


@pytest.mark.parametrize(("version", "sequences", "tokens"), [
    ("0.8.5", 1024, 2048), ("0.9.1", 1024, 2048), ("0.9.2", 128, 2048), ("0.18.1", 128, 2048), ("0.32.0", 128, 2048),
])  # fmt: skip
def test_its_batches_are_smaller(version: str, sequences: int, tokens: int) -> None:
    made = "engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(model='m'))\n"
    text = f"from vllm import AsyncEngineArgs, AsyncLLMEngine\n{made}"
    (config,) = DIALECT.read(Source("run.py", text), Version(version))
    assert config.bare
    resolution = resolve(config, Catalogue.at(Version(version)), machine_named("h100"))
    assert (resolution.value("max_num_seqs"), resolution.value("max_num_batched_tokens")) == (sequences, tokens)
    served = resolve(replace(config, bare=False), Catalogue.at(Version(version)), machine_named("h100"))
    assert served.value("max_num_batched_tokens") == 8192


@pytest.mark.parametrize(("engine", "kind"), [
    ("AsyncLLM.from_engine_args(AsyncEngineArgs(model='m'))", "V1"),
    ("AsyncLLMEngine.from_engine_args(AsyncEngineArgs(model='m'))", "V0"),
    # Which of the two is made is decided by the program.
    ("(AsyncLLM if new else AsyncLLMEngine).from_engine_args(AsyncEngineArgs(model='m')); AsyncLLM(1)", "V0"),
    ("LLM(model='m')", "V0"),
])  # fmt: skip
def test_v1s_own_class_is_v1_whatever_the_variable_says(engine: str, kind: str) -> None:
    text = f"import os\nfrom vllm import *\nos.environ['VLLM_USE_V1'] = '0'\nengine = {engine}\n"
    (config,) = DIALECT.read(Source("run.py", text), Version("0.8.5"))
    assert resolve(config, Catalogue.at(Version("0.8.5")), machine_named("h100")).value("engine") == kind

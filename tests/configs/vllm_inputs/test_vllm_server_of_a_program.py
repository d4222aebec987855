"""A server that a program starts, or drives over HTTP: its updates are read, its settings are open."""

import pytest
from reading import read_one, source_of

from rlaudit.configs.readers.python import DIALECT as IN_PROCESS
from rlaudit.configs.readers.server_of_a_program import DIALECT
from rlaudit.unknown import Unknown

LOOP = """\
import requests

def update(url, path):
    requests.post(f"{url}/pause", params={"mode": "keep", "clear_cache": "false"})
    requests.post(f"{url}/update_weights", json={"path": path})
    requests.post(url + "/resume")
"""


@pytest.mark.parametrize(
    "pause",
    [
        'requests.post(f"{url}/pause", params={"mode": "keep", "clear_cache": "false"})',
        'requests.post(f"{url}/pause?mode=keep&clear_cache=false")',
        'httpx.request("POST", url + "/pause", params={"mode": "keep", "clear_cache": False})',
        'await session.post("http://rollout:8000/pause", json={"mode": "keep", "clear_cache": False})',
    ],
)
def test_a_pause_is_read_however_it_is_posted(pause: str) -> None:
    text = f'async def f(url, session):\n    {pause}\n    requests.post(f"{{url}}/update_weights")\n'
    config = read_one(DIALECT, text, "0.18.1", "loop.py")
    assert (config.facts.pause_mode, config.facts.pause_clears_cache) == ("keep", False)
    assert config.facts.weight_updates == "in flight" and config.facts.resets_prefix_cache is False
    assert "pause_arguments" not in config.trainer


def test_the_engine_is_elsewhere_and_never_vllms_default() -> None:
    config = read_one(DIALECT, LOOP, "0.18.1", "loop.py")
    assert isinstance(config.engine["enable_prefix_caching"].value, Unknown)


def test_a_reset_over_http_counts() -> None:
    text = LOOP.replace('url + "/resume"', 'url + "/reset_prefix_cache"')
    assert read_one(DIALECT, text, "0.18.1", "loop.py").facts.resets_prefix_cache is True


def test_a_pause_whose_query_is_built_elsewhere_is_unknown() -> None:
    text = LOOP.replace('params={"mode": "keep", "clear_cache": "false"}', "params=params")
    assert isinstance(read_one(DIALECT, text, "0.18.1", "loop.py").trainer["pause_mode"].value, Unknown)


def test_what_a_program_starts_is_not_read_and_its_updates_are() -> None:
    config = read_one(DIALECT, LOOP + '\nsubprocess.Popen(["vllm", "serve", "m"])\n', "0.18.1", "loop.py")
    assert config.facts.pause_mode == "keep" and isinstance(config.engine["seed"].value, Unknown)


@pytest.mark.parametrize(
    "words", ['"vllm", "serve", "m"', "sys.executable, '-m', 'vllm.entrypoints.openai.api_server'"]
)
def test_a_server_that_a_program_starts_is_open_and_a_recording_says_it(words: str) -> None:
    config = read_one(DIALECT, f"import subprocess\nsubprocess.Popen([{words}])\n", "0.18.1", "start.py")
    assert config.place is not None and config.place.line == 2
    assert "rlaudit record" in config.engine["seed"].value.reason


def test_a_file_that_builds_the_engine_itself_has_both() -> None:
    text = LOOP + '\nfrom vllm import LLM\nllm = LLM(model="m")\n'
    assert read_one(IN_PROCESS, text, "0.18.1", "loop.py").facts.pause_mode == "keep"


@pytest.mark.parametrize("text", ["requests.post(url + '/pause')\n", "print('/pause')\n", "def f(:\n '/pause'"])
def test_other_requests_are_none_of_it(text: str) -> None:
    assert not DIALECT.recognise(source_of(text, "loop.py"))

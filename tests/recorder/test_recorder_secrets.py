"""Thirty secrets, planted wherever a training may have one: none is in a recording."""

import json
from pathlib import Path
from typing import Any

import pytest
from trainings_with_a_stand_in import place, run


def secret(number: int) -> str:
    """Return a value that has no shape by which it could be known as a secret."""
    return f"Qz{number:02d}vNw{number * 7919 % 9973:04d}LpX"


# Known by its shape alone, in whatever text.
SHAPED = ["hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", "sk-proj-abcdefghij0123456789", "AKIAIOSFODNN7EXAMPLE"]
ENVIRONMENT = [
    "HF_TOKEN",
    "RAY_REDIS_PASSWORD",
    "VLLM_API_KEY",
    "WANDB_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "TRL_PASSWORD",
    "NCCL_AUTH_TOKEN",
]
ARGV = ["--hf-token", "--api-key", "--password"]
PROGRAM = """
import json, sys, vllm
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
plan = json.loads(sys.stdin.read())
if "FAKE_VLLM_CORE" in plan:
    import os; os.environ["FAKE_VLLM_CORE"] = plan["FAKE_VLLM_CORE"]

def refused(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        print(type(error).__name__)

if __name__ == "__main__":
    refused(EngineArgs(dtype="int3", **plan["refused engine"]).create_engine_config)
    llm = vllm.LLM(**plan["engine"])
    engine = llm.llm_engine
    for name in plan["request names"]:
        llm.generate([[1, 2, 3]], SamplingParams(n=2, max_tokens=3), prefix=name)
    for extra in plan["sampling"]:
        llm.generate([[1, 2, 3]], SamplingParams(max_tokens=3, extra_args=extra))
    for stop in plan["stops"]:
        llm.generate([[1, 2, 3]], SamplingParams(max_tokens=3, stop=(stop,)))
    for arguments in plan["calls"]:
        refused(engine.collective_rpc, "update_weight", kwargs=arguments)
    for error in plan["errors"]:
        def load(weights, error=error):
            raise RuntimeError(error)
        refused(engine.collective_rpc, error)
    for path in plan["reloads"]:
        engine.collective_rpc("reload_weights", kwargs={"weights_path": path})
    if hasattr(engine, "shutdown"):
        engine.shutdown()
"""


def planted() -> tuple[dict[str, Any], dict[str, str], list[str], list[str]]:
    """Return what the program is told, its variables, its command line and all the secrets."""
    given = [secret(number) for number in range(27)]
    new = iter(given)
    variables = {name: next(new) for name in ENVIRONMENT}
    argv = [word for option in ARGV for word in (option, next(new))]
    argv += [f"--wandb-api-key={next(new)}", f"https://user:{next(new)}@host.example/model"]
    weight = {"name": "a secret", "dtype": "x", "shape": [1, 1]}
    plan = {
        "refused engine": {"hf_token": next(new), "model": f"https://me:{next(new)}@mirror.example/model"},
        "engine": {
            "hf_token": next(new),
            "api_key": next(new),
            "model": f"s3://key:{next(new)}@bucket.example/model",
            "kv_transfer_config": {
                "kv_connector": "Remote",
                "kv_connector_extra_config": {"password": next(new), "servers": [{"auth_token": next(new)}]},
            },
            "hf_overrides": {"client_secret": next(new), "note": SHAPED[0]},
        },
        "request names": [SHAPED[1], f"hf_token={variables['HF_TOKEN']}"],
        "sampling": [{"api_key": next(new)}, {"headers": {"Authorization": f"Bearer {next(new)}"}}],
        "stops": [SHAPED[2]],
        # The worker names it in its exception.
        "calls": [{**weight, "hf_token": next(new)}, {**weight, "name": f"https://u:{next(new)}@host.example"}],
        "errors": [f"api_key={next(new)}", f"no_method_with_{variables['VLLM_API_KEY']}"],
        "reloads": [f"https://reader:{next(new)}@store.example/weights", f"weights?token={next(new)}"],
    }
    assert next(new, None) is None
    return plan, variables, argv, given + SHAPED


@pytest.mark.parametrize("engine", ["V1", "V1, spawned core", "V0"])
def test_none_of_thirty_secrets_is_in_any_file(engine: str, tmp_path: Path) -> None:
    plan, variables, argv, secrets = planted()
    assert len(secrets) == 30
    here = place(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM.replace("sys.stdin.read()", "open(sys.argv[1]).read()"))
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    ended = run(
        tmp_path / "plan.json", *argv, recorded=here, engine=engine, program=tmp_path / "program.py", **variables
    )
    assert (ended.code, ended.stderr) == (0, "")
    written = here.written()
    # Everything that held one was recorded.
    assert written.of_kind("process")[0]["environment"]["VLLM_API_KEY"]
    assert len(written.of_kind("engine")) == 2 and len(written.of_kind("request")) == 7
    assert len([event for event in written.events("collective_rpc", "end") if event["error"]]) == 4
    text = "".join(file.read_text() for file in here.out.iterdir())
    assert [number for number, one in enumerate(secrets) if one in text] == []
    assert written.of_kind("failed") == []

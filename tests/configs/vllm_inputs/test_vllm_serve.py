import pytest
from packaging.version import Version
from reading import lost_names, read_one, rewritten, source_of

from rlaudit.configs.readers.serve import DIALECT
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import Loss, Origin, RolloutConfig
from rlaudit.unknown import Unknown

SCRIPT = """\
#!/bin/bash
export VLLM_USE_V1=0
TP=${TP:-8}
ARGS=(
  --enable-prefix-caching   # shared prompts
  --max-model-len 8k
)
CUDA_VISIBLE_DEVICES=0 vllm serve "org/model" \\
  -tp $TP "${ARGS[@]}" --port 8000 --api-key secret \\
  --hf-overrides '{"head_dtype": "float32"}' 2>&1 | tee log.txt
"""


def values(config: RolloutConfig) -> dict[str, object]:
    return {name: setting.value for name, setting in config.engine.items()}


def shell(text: str, vllm: str = "0.18.1") -> RolloutConfig:
    return read_one(DIALECT, text, vllm, "run.sh")


def test_a_script_gives_values_as_typed_with_their_places() -> None:
    config = shell(SCRIPT)
    assert values(config) == {
        "tensor_parallel_size": 8, "enable_prefix_caching": True, "max_model_len": 8000,
        "hf_overrides": {"head_dtype": "float32"},
    }  # fmt: skip
    assert config.model is not None and config.model.value == "org/model" and not config.offline
    setting = config.engine["max_model_len"]
    assert setting.place is not None and setting.written == "8k" and setting.origin is Origin.FILE
    assert (setting.place.line, SCRIPT[setting.place.start : setting.place.end]) == (6, "8k")
    assert config.environment["VLLM_USE_V1"].value == "0"
    assert any("TP is taken at its default 8" in one for one in config.not_seen)
    assert not config.lost


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve m --seed 1",
        "python -m vllm.entrypoints.openai.api_server --model m --seed 1",
        "python3 /opt/vllm/entrypoints/openai/api_server.py --model=m --seed=1",
        "srun --gpus 8 /venv/bin/vllm serve m --seed 1",
        "nohup env A=1 vllm serve m --seed 1 &",
        "docker run --gpus all -v a:/b --name vllm -p 1:1 vllm/vllm-openai:v0.8.5 --model m --seed 1",
        "singularity exec --nv image.sif bash -c 'vllm serve m --seed 1'",
        "tmux send-keys -t 0 'vllm serve m --seed 1' C-m",
        "vllm serve --seed 1 m",
        "cd x && vllm serve m --seed 1",
        "until curl x; do vllm serve m --seed 1; done",
        'CMD=(uv run vllm)\n"${CMD[@]}" serve m --seed 1',
        'srun bash -c "hello $RANK && vllm serve m --seed 1"',
    ],
)
def test_every_way_to_start_a_server_is_found(line: str) -> None:
    config = shell(f"#!/bin/sh\n{line}\n")
    assert values(config) == {"seed": 1}
    assert config.model is not None and config.model.value == "m"


@pytest.mark.parametrize(
    "line",
    [
        'setsid env -u B -u C VLLM_X=1 VLLM_Y="$Y" vllm serve m --seed 1',
        "docker run -e VLLM_X=1 -e VLLM_Y=$Y vllm/vllm-openai:v0.8.5 --model m",
    ],
)
def test_variables_for_the_command_alone_are_its_own_and_open_ones_are_open(line: str) -> None:
    environment = shell(f"#!/bin/sh\n{line}\n").environment
    assert environment["VLLM_X"].value == "1" and isinstance(environment["VLLM_Y"].value, Unknown)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("compose.yaml", "services:\n  s:\n    image: vllm/vllm-openai:v0.18.1\n    command: >\n      --model m\n"
         "      --seed 1\n    environment:\n      VLLM_X: 1\n"),
        ("compose.yaml", "services:\n  s:\n    image: vllm/vllm-openai\n    command: [--model, m, --seed, '1']\n"
         "    environment: [VLLM_X=1]\n"),
        ("compose.yaml", "services:\n  s:\n    entrypoint: [vllm, serve]\n    command: [m, --seed, 1]\n"
         "    environment: [VLLM_X=1]\n"),
        ("pod.yaml", "containers:\n- image: x\n  command: [python3, -m, vllm.entrypoints.openai.api_server]\n"
         "  args: [--model, m, --seed, '1']\n  env:\n  - {name: VLLM_X, value: '1'}\n"),
        ("pod.yaml", "a: 1\n---\ncontainers:\n- command: [/bin/sh, -c]\n  args:\n  - |\n    set -e\n"
         "    exec vllm serve m \\\n      --seed 1\n  env:\n  - name: VLLM_X\n    value: '1'\n"),
        ("job.yaml", "envs:\n  VLLM_X: 1\nrun: |\n  conda activate x\n  vllm serve m --seed 1\n"),
        ("job.yaml", 'arguments: ["pip install vllm && VLLM_X=1 vllm serve m --seed 1"]\n'),
        ("values.yaml", 'image:\n  command: ["vllm", "serve", "m", "--seed", "1"]\n  env: {VLLM_X: 1}\n'),
        ("pod.json", '{"spec": {"containers": [{"image": "vllm/vllm-openai:x", "args": ["--model=m", "--seed=1"],\n'
         ' "env": [{"name": "VLLM_X", "value": "1"}]}]}}'),
    ],
)  # fmt: skip
def test_containers_and_jobs_are_read_with_their_environment(path: str, text: str) -> None:
    config = read_one(DIALECT, text, "0.18.1", path)
    assert values(config) == {"seed": 1}
    assert config.model is not None and config.model.value == "m"
    assert config.environment["VLLM_X"].value == "1"
    place = config.engine["seed"].place
    assert place is not None and "1" in text[place.start : place.end]
    edited = rewritten(config, text, "seed", 2)
    assert values(read_one(DIALECT, edited, "0.18.1", path)) == {"seed": 2}
    more = rewritten(config, text, "enable_prefix_caching", False)
    again = read_one(DIALECT, more, "0.18.1", path)
    assert values(again) == {"seed": 1, "enable_prefix_caching": False}
    assert again.write("enable_prefix_caching", False) == ()


def test_a_guide_about_commands_and_other_programs_are_not_servers() -> None:
    assert not DIALECT.recognise(source_of("guide: |\n  vllm serve m --seed 1\nx: 1\n"))
    assert not DIALECT.recognise(source_of("description: run `vllm serve m`\n"))
    assert not DIALECT.recognise(source_of("#!/bin/sh\npip install vllm\necho 'vllm serve m'\n", "run.sh"))
    assert not DIALECT.recognise(source_of("#!/bin/sh\nvllm bench serve --model m\n", "run.sh"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("run.sh", "vllm serve --help=max-model-len\n"),
        ("run.sh", "python -m vllm.entrypoints.openai.api_server -h | grep logprobs\n"),
        ("run.py", "import subprocess, sys\nsubprocess.run([sys.executable, '-m',"
                   " 'vllm.entrypoints.openai.api_server', '--help'])\n"),
    ],
)  # fmt: skip
def test_a_question_for_the_flags_starts_no_server(path: str, text: str) -> None:
    assert not DIALECT.recognise(source_of(text, path))
    assert DIALECT.recognise(source_of("vllm serve m --host h --hf-overrides '{}'\n", "run.sh"))


def test_a_switch_takes_no_value_and_a_number_must_be_one() -> None:
    config = shell("vllm serve m --enable-prefix-caching true --seed x --enforce-eager=false\n")
    assert config.engine["enable_prefix_caching"].value is True
    assert lost_names(config) == {"enable_prefix_caching", "enforce_eager", "seed"}
    for name in ("seed", "enforce_eager"):
        assert isinstance(config.engine[name].value, Unknown)


@pytest.mark.parametrize(("written", "vllm", "arrives"), [
    ("--limit-mm-per-prompt image=2,video=1", "0.9.2", {"image": 2, "video": 1}),
    ("--limit-mm-per-prompt image=2,video=1", "0.10.0", None), ("--mm-processor-kwargs max_pixels", "0.18.1", None),
    ("--compilation-config 3", "0.9.1", 3), ("--compilation-config 3", "0.18.1", None),
])  # fmt: skip
def test_what_is_no_json_to_a_release_stops_its_start(written: str, vllm: str, arrives: object) -> None:
    config = read_one(DIALECT, f"vllm serve m {written}\n", vllm, "run.sh")
    (setting,) = config.engine.values()
    assert (setting.value == arrives) if arrives else isinstance(setting.value, Unknown)
    assert [lost.loss for lost in config.lost] == ([] if arrives else [Loss.REFUSED])


@pytest.mark.parametrize("template", ["{length}", "<length>", "%d"])
def test_a_value_that_a_template_leaves_to_another_program_is_open(template: str) -> None:
    config = shell(f"vllm serve m --max-model-len '{template}'\n")
    assert isinstance(config.engine["max_model_len"].value, Unknown) and not config.lost


def test_of_a_repeated_flag_the_last_wins_and_the_first_is_said() -> None:
    config = shell("vllm serve m --enable-prefix-caching --seed 1 --no-enable-prefix-caching\n")
    assert config.engine["enable_prefix_caching"].value is False
    assert [(lost.name, lost.loss) for lost in config.lost] == [("enable_prefix_caching", Loss.OVERRULED)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_flag_alone_on_a_line_of_folded_yaml_goes_with_its_line(end: str) -> None:
    lines = ("services:", "  s:", "    image: vllm/vllm-openai:v0.8.5", "    command: >", "      --model m",
             "      --disable-log-requests", "      --seed 1", "")  # fmt: skip
    text = end.join(lines)
    (config,) = DIALECT.read(Source("compose.yaml", text), Version("0.18.1"))
    assert rewritten(config, text, "disable_log_requests", None) == end.join((*lines[:5], *lines[6:]))


def test_abbreviations_underscores_and_dotted_flags_mean_what_argparse_makes_of_them() -> None:
    config = shell("vllm serve m --gpu-memory-util .8 --max_num_seqs 4 --compilation-config.mode 3\n")
    assert values(config) == {"gpu_memory_utilization": 0.8, "max_num_seqs": 4, "compilation_config": {"mode": 3}}


def test_dotted_flags_replace_json_wherever_it_stands() -> None:
    config = shell("vllm serve m --hf-overrides.a.b 1 --hf-overrides.c x --hf-overrides '{\"d\": 2}'\n")
    assert values(config) == {"hf_overrides": {"a": {"b": 1}, "c": "x"}}
    assert [lost.loss for lost in config.lost] == [Loss.OVERRULED]
    assert lost_names(shell("vllm serve m --hf-overrides.a 1\n", "0.8.5")) == {"hf_overrides"}


@pytest.mark.parametrize(
    ("vllm", "name", "value"),
    [
        ("0.8.5", "compilation_config", {"level": 3}), ("0.11.2", "compilation_config", {"mode": 3}),
        ("0.12.0", "optimization_level", 3),
    ],
)  # fmt: skip
def test_what_dash_o_means_depends_on_the_release(vllm: str, name: str, value: object) -> None:
    assert shell("vllm serve m -O3\n", vllm).engine[name].value == value


def test_a_flag_of_another_release_stays_and_one_of_none_is_lost() -> None:
    config = shell("vllm serve m --swap-space 4 --disable-log-requests --nonsense 1\n", "0.32.0")
    assert values(config) == {"swap_space": 4.0, "disable_log_requests": True}
    assert [(lost.name, lost.loss) for lost in config.lost] == [("nonsense", Loss.REFUSED)]


def test_words_that_only_a_run_tells_are_said() -> None:
    config = shell('vllm serve "$1" --seed $SEED "$@"\n')
    assert config.model is not None and isinstance(config.model.value, Unknown)
    assert isinstance(config.engine["seed"].value, Unknown)
    assert any("the arguments that the script" in one for one in config.not_seen)


@pytest.mark.parametrize("option", ["--config c.yaml", "--config=c.yaml"])
def test_what_the_config_file_of_a_command_may_set_is_open_and_the_file_is_named(option: str) -> None:
    config = shell(f"vllm serve m {option} --seed 2\n")
    assert values(config) == {"seed": 2}
    assert isinstance(config.engine.get("enable_prefix_caching").value, Unknown)
    assert any("c.yaml, the file of --config, is not read with the command" in one for one in config.not_seen)


def test_a_subcommand_that_stands_in_an_array_is_found_and_a_printed_one_is_not() -> None:
    text = 'A=(\n  serve org/model\n  --seed 3\n)\necho vllm "${A[@]}"\nvllm "${A[@]}" &\n'
    assert read_one(DIALECT, text, "0.18.1", "run.sh").engine["seed"].value == 3


COMPOSED = """\
services:
  vllm:
    image: vllm/vllm-openai:v0.8.5
    environment:
      VLLM_USE_V1: ${VLLM_USE_V1:-0}
      VLLM_ATTENTION_BACKEND: $BACKEND
    command: ["--model", "m", "--dtype", "${DTYPE:-float16}", "--seed", "${SEED}"]
"""


def test_compose_fills_in_defaults_and_leaves_the_rest_open() -> None:
    config = read_one(DIALECT, COMPOSED, "0.8.5", "compose.yaml")
    assert config.environment["VLLM_USE_V1"].value == "0"
    assert config.environment["VLLM_USE_V1"].written == "${VLLM_USE_V1:-0}"
    assert isinstance(config.environment["VLLM_ATTENTION_BACKEND"].value, Unknown)
    assert config.engine["dtype"].value == "float16"
    assert isinstance(config.engine["seed"].value, Unknown)
    assert "VLLM_USE_V1 is taken at its default 0, unless the environment sets it" in config.not_seen
    assert "DTYPE is taken at its default float16, unless the environment sets it" in config.not_seen


@pytest.mark.parametrize(
    "value",
    ["value: $(V1)", 'value: "{{ .Values.v1 }}"', "value: {{ .Values.v1 }}", "valueFrom: {configMapKeyRef: {}}"],
)
def test_a_variable_of_a_pod_that_something_else_fills_in_is_not_taken_as_unset(value: str) -> None:
    text = f"spec:\n- env:\n  - name: VLLM_USE_V1\n    {value}\n  command: [vllm, serve, m]\n"
    assert isinstance(read_one(DIALECT, text, "0.8.5", "pod.yaml").environment["VLLM_USE_V1"].value, Unknown)


def test_a_backslash_at_the_very_end_is_no_word() -> None:
    config = shell("vllm serve m --enforce-eager \\")
    assert config.engine["enforce_eager"].value is True and not config.lost


def test_a_word_after_a_switch_stops_the_start() -> None:
    config = shell("vllm serve m --enable-chunked-prefill true --port 1\n")
    assert [(lost.name, lost.loss) for lost in config.lost] == [("enable_chunked_prefill", Loss.REFUSED)]

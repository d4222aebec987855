"""What counts as a secret, what does not, and that nothing of one is left."""

import random
import re
import string
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rlaudit import secrets
from rlaudit.secrets import MASK, learn, learn_text, mask, masked_places, names_a_secret, put_back, take_out

SECRETS_BY_NAME = """
    HF_TOKEN hf_token hfToken api_key api-key WANDB_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY PGPASSWORD
    DB_PASS password user.password authorization OPENAI_KEY token use_auth_token hub_token accessKeyId credentials
    GITHUB_TOKEN SLACK_BOT_TOKEN SSH_AUTH_SOCK private_key client_secret secretName client-key-data clientKeyData
    tls-key-data
"""
OTHER_NAMES = """
    max_tokens tokenizer eos_token eos_token_id prompt_key reward_fn_key key tokens token_ids PWD pad_token keyword
    TOKENIZERS_PARALLELISM stop_token forward_pass num_tokens cell_key per_token tokens_per_second monkey author
    authority bypass image_token KEYTIMEOUT key_prefix cache_key max_num_batched_tokens
    certificate-authority-data client-certificate-data key_dataset
"""
MIXED = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
HEXADECIMAL = "0123456789abcdef0123456789abcdef01234567"
# A text with the secret in it, in two parts: no scanner of repositories shall take one for a real token.
SHAPES = tuple(
    (text.replace("{}", secret), secret)
    for text, *parts in (
        ("{}", "hf_", MIXED),
        ("{}", "api_org_", MIXED),
        ("{}", "sk-proj-", "abcdefghij0123456789"),
        ("{}", "sk-ant-api03-", f"{MIXED}-{MIXED}"),
        ("{}", "gsk_", f"{MIXED}{MIXED}"),
        ("{}", "ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"),
        ("{}", "github_pat_", "11ABCDEFG0abcdefghij_klmnop"),
        ("{}", "AKIA", "IOSFODNN7EXAMPLE"),
        ("{}", "ASIA", "IOSFODNN7EXAMPLE"),
        ("https://b.s3.amazonaws.com/x?X-Amz-Expires=60&X-Amz-Signature={}", HEXADECIMAL, HEXADECIMAL[:24]),
        ("https://a.blob.core.windows.net/c/m.bin?sv=2024&sig={}&se=2027", MIXED, "%2Fab%3D"),
        ("{}", "glpat-", "abcdefghij1234567890"),
        ("{}", "glrt-", "abcdefghij1234567890"),
        ("{}", "xoxb-", "123456789012-abcdefghijkl"),
        ("{}", "xapp-", f"1-A0123456789-1234567890123-{HEXADECIMAL}"),
        ("xoxe.{}", "xoxp-", "1-Mi0yLTEyMzQ1Njc4OTAtMTIz"),
        ("https://hooks.slack.com/{}", "services/", f"T01234567/B01234567/{MIXED[:24]}"),
        ("https://discord.com/api/v10/webhooks/{}", "123456789012345678/", f"{MIXED}-{MIXED}"),
        ("{}", "eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"),
        ("{}", "AIza", f"Sy{MIXED}"),
        ("{}", "ya29.", f"a0{MIXED}"),
        ("{}", "GOCSPX-", MIXED[:28]),
        ("{}", "npm_", MIXED),
        ("{}", "pypi-", f"AgEIcHlwaS5vcmcC{MIXED}"),
        ("{}", "dckr_pat_", MIXED[9:]),
        ("{}", "dckr_oat_", MIXED),
        ("{}", "wandb_v1_", f"{MIXED}_{MIXED}"),
        ("wandb login --relogin {}", HEXADECIMAL[:20], HEXADECIMAL[20:]),
        ('wandb.login(key="{}")', HEXADECIMAL[:20], HEXADECIMAL[20:]),
        ("{}", "nvapi-", f"{MIXED}_{MIXED[:20]}"),
        ("{}", "r8_", f"{MIXED}a"),
        ("{}", "ak-", MIXED[14:]),
        ("{}", "as-", MIXED[14:]),
        ("{}", "SG.", f"{MIXED[14:]}.{MIXED}1234567"),
        ("{}", "sk_live_", MIXED[12:]),
        ("{}", "rk_live_", MIXED[12:]),
        ("{}", "whsec_", MIXED[4:]),
        ("https://api.telegram.org/bot{}/getMe", "123456:", "ABC-DEF1234ghIkl-zyx57W2v1u123ew11"),
        ("{}", "7123456789:", f"AA{MIXED[3:]}"),
        ("{}", "hvs.", f"CAESI{MIXED}"),
        ("{}", "dapi", HEXADECIMAL[:32]),
        ("https://{}@mirror.example/simple", "user:", "pa55"),
        ("Authorization: Bearer {}", "mF_9.", "B5f-4.1JqM"),
        ("curl -H 'Authorization: Basic {}' x.example", "dXNlcjpw", "YXNz"),
        ("docker login -u me -p {} registry.example", "hunter", "two"),
        ("podman login quay.io --password={} && train", "hunter", "two"),
        ("curl -sS -u me:{} https://x.example", "hunter", "two"),
        ('curl --user "me:{}" https://x.example', "hunter", "two"),
        ("machine api.wandb.ai login user password {}", "hunter", "two"),
        ("{}", "-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"),
        ("{}", "LS0tLS1CRUdJTiBSU0EgUFJJ", "VkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB"),
    )
    for secret in ("".join(parts),)
)
# What looks a little like one, and what a report must not lose.
NO_SECRETS = (
    "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432", f"commit {HEXADECIMAL}", f"sha256:{HEXADECIMAL}{HEXADECIMAL[:24]}",
    "npm_config_registry npm_package_version npm_lifecycle_event", "pypi-mirror.internal.example/simple",
    "pypi-proxy-for-the-cluster-2", "task-based ask-user-to-confirm risk-aware-sampling-with-2-models",
    "as-of-2026-11-28T12:34:56", "as-long-as-possible", "ak-47 r8_unorm r8g8b8a8", "SG.Model.forward_pass_of_it",
    "run ids: 3k2j1h9g wandb/run-20261128_123456-3k2j1h9g", "wandb.init(project='grpo', name='0123abcd')",
    "Basic training of a model, basic configuration, Basic LoggingConfig", "2026-11-28 12:34:56,789:INFO:rlaudit",
    "20261128:meta-llama-Llama-3.1-8B-Instruct", "docker run -p 8000:8000 --user 1000:1000 image",
    "curl http://0.0.0.0:8000/v1/completions -d '{\"model\": \"m\"}'", "login node password policy",
    "signature=inspect.signature(function_of_this_module)", "sig=SIGTERM_of_the_process",
    "https://discord.com/developers/docs/resources/webhook", "https://api.github.com/repos/a/b/webhooks/list-them-all",
    "Qwen/Qwen3-30B-A3B-Instruct-2507 deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "hvs.py dapi.py ya29.txt",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk", "whsec_of_x rk_test_x",
    "certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM", "gsk_kernel_of_attention",
)  # fmt: skip
# A value that is given to a name, in the ways in which files, scripts and command lines do it.
WAYS = (
    "{name}: {value}",
    '{name}: "{value}"',
    '"{name}": "{value}",',
    "'{name}': '{value}'}}",
    "{name}={value} python train.py",
    "export {name}='{value}'",
    'os.environ["{name}"] = "{value}"',
    'os.environ.setdefault("{name}", "{value}")',
    '{name}: str = "{value}"',
    "LLM({name}='{value}', dtype='auto')",
    "vllm serve --{name} {value}",
    "vllm serve --{name}={value}",
    '- name: {name}\n  value: "{value}"',
    "docker run -e {name}={value} image",
)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    forget_all()
    yield
    forget_all()


def forget_all() -> None:
    for known in (secrets._anywhere, secrets._behind_their_names, secrets._compiled):
        known.clear()


@pytest.mark.parametrize("name", SECRETS_BY_NAME.split())
def test_a_name_that_tells_a_secret_is_one_however_it_is_written(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_a_name_of_vocabulary_or_data_is_no_secret(name: str) -> None:
    assert not names_a_secret(name)


@pytest.mark.parametrize(("text", "secret"), SHAPES)
def test_a_token_is_known_by_its_shape_in_any_place(text: str, secret: str) -> None:
    assert secret not in mask(f"the model of {text}, please")
    assert mask({"description": text}) == {"description": text.replace(secret, MASK)}


def test_every_shape_has_an_example_here_and_the_page_that_shows_it() -> None:
    for marks, pattern, page in secrets._ROWS:
        shape = re.compile(pattern)
        assert any(shape.search(text) and any(mark in text for mark in marks) for text, _ in SHAPES), pattern
        assert re.fullmatch(r"[\w-]+(\.[\w-]+)+/\S+", page), page


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_only_looks_like_a_token_stays(text: str) -> None:
    learn_text(text)
    assert mask(f"the value {text}, please") == f"the value {text}, please"


def test_what_a_command_gives_as_a_password_is_masked_wherever_it_occurs() -> None:
    learn_text("docker login -u me -p hunter2two registry.example")
    assert mask("refused: hunter2two") == f"refused: {MASK}"


def test_an_address_keeps_its_host_and_loses_its_login() -> None:
    assert mask("from https://user:pa55@mirror.example/simple") == f"from https://{MASK}@mirror.example/simple"
    assert mask("git clone ssh://git@github.com/a/b") == "git clone ssh://git@github.com/a/b"
    assert (
        mask("see https://host.example/a?b=c, mail a@b.example") == "see https://host.example/a?b=c, mail a@b.example"
    )


def test_under_its_name_a_secret_is_masked_whatever_it_looks_like() -> None:
    document = {"hf_token": "x", "blocks": [{"api_key": "auto"}], "credentials": {"user": "me", "pin": 1234}}
    hidden = mask(document)
    assert hidden == {"hf_token": MASK, "blocks": [{"api_key": MASK}], "credentials": {"user": MASK, "pin": MASK}}
    assert masked_places(hidden) == ["hf_token", "blocks.0.api_key", "credentials.user", "credentials.pin"]


def test_what_stands_for_a_secret_is_none() -> None:
    document = {"hf_token": "${HF_TOKEN}", "api_key": None, "token": "<your token>", "use_auth_token": True}
    assert mask(document) == document


def test_a_row_of_a_name_and_its_values_is_a_name_with_values() -> None:
    row = {"name": "hf_token", "written": "plain", "effective_to": "plain", "note": "plain words"}
    assert mask(row) == {"name": "hf_token", "written": MASK, "effective_to": MASK, "note": "plain words"}


@pytest.mark.parametrize(
    "text",
    ['api_key = os.environ["OPENAI_API_KEY"]', "password=os.getenv('PASSWORD')", 'api_key=engine_kwargs["api_key"]',
     "secret=$(cat /run/secrets/one)"],
)  # fmt: skip
def test_where_a_program_looks_a_secret_up_is_none(text: str) -> None:
    learn_text(text)
    assert mask("os.environ['HOME'], os.getenv('HOME'), engine_kwargs['dtype'], $(cat file)") == (
        "os.environ['HOME'], os.getenv('HOME'), engine_kwargs['dtype'], $(cat file)"
    )


def test_what_was_known_under_a_name_is_masked_in_a_sentence() -> None:
    learn({"engine_args": {"hf_token": "s3cret-value"}})
    assert mask("non-default args: s3cret-value was refused") == f"non-default args: {MASK} was refused"


def test_a_plain_word_is_masked_behind_its_name_and_stays_a_word_elsewhere() -> None:
    learn({"password": "auto"})
    assert mask("{'password': 'auto'} with dtype auto") == f"{{'password': '{MASK}'}} with dtype auto"


def test_names_in_code_make_no_secret_of_what_they_stand_for() -> None:
    learn_text(
        "key = 'logprobs_mode'\ntoken = tokenizer.decode(ids)\nfor key in config.items(): total += token_ids[key]"
    )
    assert mask("logprobs_mode of tokenizer.decode(ids)") == "logprobs_mode of tokenizer.decode(ids)"


def test_2000_random_secrets_given_in_every_way_leave_nothing() -> None:
    source = random.Random(20260101)
    signs = string.ascii_letters + string.digits + "+/=_-.!@%^*"
    for _ in range(2000):
        value = "".join(source.choices(signs, k=source.randint(8, 60))) + source.choice(string.ascii_letters) + "7"
        way = source.choice(WAYS).format(name=source.choice(SECRETS_BY_NAME.split()[:9]), value=value)
        learn_text(way)
        said = mask(f"said elsewhere: {value}!")
        assert value not in said, way
        forget_all()


def test_what_is_taken_out_is_put_back_and_the_rest_holds_no_secret() -> None:
    document: dict[str, Any] = {
        "engine_args": {"hf_token": SHAPES[0][0], "dtype": "auto", "nested": [{"api_key": "k"}, SHAPES[4][0]]},
        "prompt_token_ids": [[1, 2], [3]],
    }
    public, taken = take_out(document)
    assert public["engine_args"]["dtype"] == "auto"
    assert SHAPES[0][0] not in str(public)
    assert put_back(public, taken) == document


@pytest.mark.parametrize(
    "text",
    [
        "token" * 20000,
        f'token: "{"a" * 60}!"',
        f"hf_token: {'word' * 20000}1",
        "a-" * 50000,
        "token: " * 14000,
        "://a:" * 20000,
        "eyJ" * 33000,
        "-----BEGIN PRIVATE KEY" * 4000,
        "docker login " * 8000,
        "curl -u a" * 10000,
        "login x password " * 6000,
        "0123456789:" * 9000,
        "Authorization: " * 7000 + "asic ",
        "pypi-" + "a" * 90000,
        "ak-" * 30000,
        "wandb login " * 8000,
    ],
)
def test_a_text_made_to_be_slow_is_not(text: str) -> None:
    began = time.process_time()
    learn_text(text)
    mask(text)
    assert time.process_time() - began < 5

"""What counts as a secret, what does not, and that nothing of one is left."""

import random
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
    GITHUB_TOKEN SLACK_BOT_TOKEN SSH_AUTH_SOCK private_key client_secret secretName
"""
OTHER_NAMES = """
    max_tokens tokenizer eos_token eos_token_id prompt_key reward_fn_key key tokens token_ids PWD pad_token keyword
    TOKENIZERS_PARALLELISM stop_token forward_pass num_tokens cell_key per_token tokens_per_second monkey author
    authority bypass image_token KEYTIMEOUT key_prefix cache_key max_num_batched_tokens
"""
SHAPES = (
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "sk-proj-abcdefghij0123456789",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghij_klmnop",
    "AKIAIOSFODNN7EXAMPLE",
    "glpat-abcdefghij1234567890",
    "xoxb-123456789012-abcdefghijkl",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
)
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


@pytest.mark.parametrize("token", SHAPES)
def test_a_token_is_known_by_its_shape_in_any_place(token: str) -> None:
    assert token not in mask(f"the model of {token}, please")
    assert mask({"description": token}) == {"description": MASK}


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
        "engine_args": {"hf_token": SHAPES[0], "dtype": "auto", "nested": [{"api_key": "k"}, SHAPES[4]]},
        "prompt_token_ids": [[1, 2], [3]],
    }
    public, taken = take_out(document)
    assert public["engine_args"]["dtype"] == "auto"
    assert SHAPES[0] not in str(public)
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
    ],
)
def test_a_text_made_to_be_slow_is_not(text: str) -> None:
    began = time.process_time()
    learn_text(text)
    mask(text)
    assert time.process_time() - began < 5

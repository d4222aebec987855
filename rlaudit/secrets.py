"""What a secret is, and how it is kept out of everything that rlaudit writes, prints or passes on a command line.

A secret is the value of a key or variable with such a name (`hf_token`, `WANDB_API_KEY`, `password`), and any text
that has the shape of a token, under any name. A value that was read under such a name is masked from then on wherever
it occurs, in a sentence or in an engine's log as well. A plain word (`auto`) is masked behind its
name only: elsewhere it is a word.

Not covered: a secret that nothing names and that looks like any other text.

The worker loads this file by its path inside the engine's interpreter: standard library only, Python 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import Any

MASK = "***"
# A shorter value, or one without a sign that words do not have, would be masked in the middle of innocent text.
_SHORTEST_KNOWN_ANYWHERE = 8
_REFERENCE = re.compile(r"\$\{?\w|^\$\(|\{\{|%\(|^<.*>$|^\**$")
# `api_key = os.environ["API_KEY"]`, `getenv("API_KEY")`: the secret is elsewhere.
_LOOKUPS = ('["', "['", '("', "('")
# A word after the first begins with a sign or a capital: otherwise a long word would be cut in every possible way
# before it is no match.
_PLAIN_WORDS = re.compile(r"[A-Z]?[a-z]+(?:(?:[ _./:-][A-Z]?|[A-Z])[a-z]+)*|[\d.,:+-]+")
_LETTERS_AND_DIGITS = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[^()\[\]{}<>\s]+$")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SURE = re.compile(
    r".*(?:password|passwd|passphrase)|secrets?|credentials?|apikeys?|authorization|bearer|cookies?|pwd|pw"
)
_KEYS_OF = re.compile(r"api|access|secret|private|account|encryption|signing|auth|license|ssh|deploy|master")
# Names of vocabulary and of columns: every tokenizer has the former, every RL dataset the latter.
_TOKENS_OF_TEXT = re.compile(
    r"added|bad|begin|bos|by|cls|decode|each|end|eos|every|first|image|input|last|mask|new|next|of|one|output|pad|per|"
    r"placeholder|previous|prompt|sampled|sep|special|start|stop|think|tool|unk|user|video|audio|adapter"
)
_KEYS_OF_DATA = re.compile(
    r"answer|audio|cache|candidate|cell|chat|column|config|context|data|dataset|dict|eval|field|fn|foreign|group|id|"
    r"images?|input|label|messages|metric|modal|model|multi|name|nested|output|partition|primary|prompt|public|query|"
    r"question|reference|response|reward|routing|score|solution|sort|state|target|template|text|tools?|train|value|video"
)
# As Kubernetes and reports write a variable: {name: HF_TOKEN, value: ...}.
_VALUES_OF_A_NAME = ("value", "written", "effective_from", "effective_to")
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})
_LOGINS = re.compile(r"admin|db|https?|index|login|mail|proxy|redis|registry|root|smtp|user")

# Marks, one of which the text must hold (looking for these first is fifty times as fast), the shape, of which only the
# group is secret if it has one, and the page that shows it.
_MIXED = r"(?=[\w-]{0,99}[a-z])(?=[\w-]{0,99}[A-Z])(?=[\w-]{0,99}\d)"
_ROWS = (
    (("hf_", "api_org_"), r"\b(?:hf|api_org)_[A-Za-z0-9]{16,}", "huggingface.co/docs/hub/security-tokens"),
    (("sk-",), r"\bsk-(?=[\w-]{0,200}\d)[\w-]{16,}", "platform.openai.com/docs/api-reference/authentication"),
    (("gsk_",), r"\bgsk_[A-Za-z0-9]{20,}", "console.groq.com/docs/quickstart"),
    (("gho_", "ghp_", "ghr_", "ghs_", "ghu_"), r"\bgh[oprsu]_[A-Za-z0-9]{16,}",
     "github.blog/2021-04-05-behind-githubs-new-authentication-token-formats"),
    (("github_pat_",), r"\bgithub_pat_\w{16,}",
     "docs.github.com/authentication/keeping-your-account-and-data-secure/about-authentication-to-github"),
    (("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}",
     "docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html"),
    (("X-Amz-Sig", "X-Goog-Sig"), r"\bX-(?:Amz|Goog)-Signature=(\w{16,})",
     "docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html"),
    (("sig=",), r"[?&;]sig=([\w%+/=-]{16,})", "learn.microsoft.com/azure/storage/common/storage-sas-overview"),
    (("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glagent-"),
     r"\bgl(?:pat|dt|rt|ptt|cbt|agent)-[\w.-]{10,}", "docs.gitlab.com/security/tokens"),
    (("xox", "xapp-"), r"\b(?:xox[a-z]|xapp)-[\w-]{8,}", "docs.slack.dev/authentication/tokens"),
    (("hooks.slack.com/",), r"\bhooks\.slack\.com/([\w/+-]{8,})",
     "docs.slack.dev/messaging/sending-messages-using-incoming-webhooks"),
    (("/webhooks/",), r"/webhooks/(\d{15,20}/[\w-]{20,})", "discord.com/developers/docs/resources/webhook"),
    (("eyJ",), r"\beyJ[\w-]{5,}\.[\w-]{4,}\.[\w-]*", "datatracker.ietf.org/doc/html/rfc7519"),
    (("AIza",), r"\bAIza[\w-]{30,}", "cloud.google.com/docs/authentication/api-keys"),
    (("ya29.",), r"\bya29\.[\w-]{16,}", "developers.google.com/identity/protocols/oauth2"),
    (("GOCSPX-",), r"\bGOCSPX-[\w-]{16,}", "developers.google.com/identity/protocols/oauth2"),
    (("npm_",), r"\bnpm_[A-Za-z0-9]{30,}", "docs.npmjs.com/about-access-tokens"),
    (("pypi-",), rf"\bpypi-{_MIXED}[\w-]{{16,}}", "pypi.org/help/#apitoken"),
    (("dckr_",), r"\bdckr_(?:pat|oat)_[\w-]{16,}", "docs.docker.com/security/access-tokens"),
    (("wandb_v1_",), r"\bwandb_v1_\w{16,}", "docs.wandb.ai/models/support/find_api_key"),
    (("wandb",), r"\bwandb(?:\.login\(|\s+login\s)[^)\n]{0,99}?\b([0-9a-f]{40})\b",
     "docs.wandb.ai/models/ref/cli/wandb-login"),
    (("nvapi-",), r"\bnvapi-[\w-]{16,}", "docs.nvidia.com/ngc/gpu-cloud/ngc-user-guide"),
    (("r8_",), r"\br8_[A-Za-z0-9]{20,}", "replicate.com/docs/topics/security/api-tokens"),
    (("ak-", "as-"), rf"\ba[ks]-{_MIXED}[A-Za-z0-9]{{20,}}\b", "modal.com/docs/reference/modal.config"),
    (("SG.",), r"\bSG\.[\w-]{16,}\.[\w-]{16,}", "www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys"),
    (("k_live_", "k_test_"), r"\b[prs]k_(?:live|test)_[A-Za-z0-9]{10,}", "docs.stripe.com/keys"),
    (("whsec_",), r"\bwhsec_[A-Za-z0-9+/=]{16,}", "docs.stripe.com/webhooks/signature"),
    ((":A",), rf"(?<!\d)\d{{6,12}}:(?=A[\w-]{{33,35}}(?![\w-])){_MIXED}[\w-]{{34,36}}",
     "core.telegram.org/bots/api#authorizing-your-bot"),
    (("hvs.",), r"\bhvs\.[\w-]{20,}", "developer.hashicorp.com/vault/docs/concepts/tokens"),
    (("dapi",), r"\bdapi[0-9a-f]{32}\b", "docs.databricks.com/dev-tools/auth/pat"),
    (("://",), r"(?<=://)(?:[^/\s:@'\"]{0,200}:[^/\s@'\"]{1,999}|[^/\s:@'\"]{16,999})(?=@)",
     "datatracker.ietf.org/doc/html/rfc3986#section-3.2.1"),
    (("earer ",), r"(?<=earer )[\w+/=.~-]{8,}", "datatracker.ietf.org/doc/html/rfc6750#section-2.1"),
    (("asic ",), r"(?i:authorization)[\"']?\s{0,9}[:=]\s{0,9}[\"']?[Bb]asic ([\w+/=-]{4,})",
     "datatracker.ietf.org/doc/html/rfc7617"),
    (("login",),
     r"\b(?:docker|podman|buildah|skopeo|nerdctl|crane|oras|registry)\s+(?:auth\s+)?login\b(?:[^\n;|&\\]|\\\n){0,300}?"
     r"\s(?:-p[ =]?|--password[ =])[\"']?([^\s\"'$]{3,})", "docs.docker.com/reference/cli/docker/login"),
    (("curl",),
     r"\bcurl\s(?:[^\n;|&\\]|\\\n){0,500}?(?<=\s)(?:-u ?|--(?:proxy-)?user[ =])[\"']?[^\s:\"'$]{1,99}:([^\s\"'$]{3,})",
     "curl.se/docs/manpage.html#-u"),
    (("machine ",), r"\bmachine \S{1,99}\s{1,9}login\s{1,9}\S{1,99}\s{1,9}password\s{1,9}(\S{3,})",
     "everything.curl.dev/usingcurl/netrc.html"),
    (("PRIVATE KEY",), r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}-----|\Z)",
     "datatracker.ietf.org/doc/html/rfc7468"),
    # The same in base64, as a kubeconfig's client-key-data has it.
    (("LS0tLS1CRUdJTi",),
     r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFU|BQUklWQVRF|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZB|BFTkNSWVBURUQgUFJJ)[\w+/=]*",
     "kubernetes.io/docs/reference/config-api/kubeconfig.v1"),
)  # fmt: skip
_SHAPES = tuple((marks, re.compile(pattern)) for marks, pattern, _page in _ROWS)
_TELLING = ("token", "key", "pass", "pwd", "pw", "secret", "credential", "auth", "bearer", "cookie")
_TELLS = re.compile("|".join(_TELLING))
_LONGEST_NAME = 80
_SHORT = 400
_REST_OF_A_NAME = re.compile(rf"[\w.-]{{0,{_LONGEST_NAME}}}", re.ASCII)
# Between a name and its value: `name: value`, `name=value`, `"name": "value"`, `environ["NAME"] = "value"`,
# `setdefault("NAME", "value")`, `name: str = "value"`, and a `value:` in the line below a `name:`.
_BETWEEN = (
    r"""["']?\]?\s{0,20}(?::\s{0,20}[\w\[\]. |]{1,40}=(?=\s{0,20}["'])|[:=]|,(?=\s{0,20}["'])|"""
    r"""\s{1,80}["']?value["']?\s{0,20}[:=])\s{0,20}"""
)
_VALUE = r"""\\?(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"',;)}\]#&|\\]+))"""
_GIVEN = re.compile(_BETWEEN + _VALUE, re.ASCII)
_GIVEN_TO_A_FLAG = re.compile(rf"(?:{_BETWEEN}|\s{{1,20}}){_VALUE}", re.ASCII)

_anywhere: set[str] = set()
_behind_their_names: set[str] = set()
_compiled: list[re.Pattern[str]] = []


@lru_cache(maxsize=4096)
def names_a_secret(name: str) -> bool:
    """Return whether a key or variable of this name holds a secret."""
    return _is_sure(name) or _is_likely(name)


@lru_cache(maxsize=4096)
def _is_sure(name: str) -> bool:
    """Return whether everything under this name is a secret, a table or a number as well."""
    words = _words(name)
    if name in _DIRECTORIES or not words:
        return False
    before = ("", *words)
    return (
        any(_SURE.fullmatch(word) for word in words)
        or any(_KEYS_OF.fullmatch(before[place]) and words[place] in ("key", "keys") for place in range(len(words)))
        or words[-2:] == ["key", "data"]
        or (words[-1] == "pass" and _LOGINS.fullmatch(before[-2]) is not None)
    )


def _is_likely(name: str) -> bool:
    """Return whether text under this name is a secret; a number or a table is not."""
    words = _words(name)
    if not words:
        return False
    before = ("", *words)[-2]
    if words[-1].endswith("token"):
        return not _TOKENS_OF_TEXT.fullmatch(before)
    if words[-1] == "key":
        return before != "" and not _KEYS_OF_DATA.fullmatch(before)
    return "auth" in words


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def learn(document: Any, name: str = "") -> None:
    """Mask from now on every secret of plain data (mappings, lists, text), by the names in it."""
    for key, value in _named_values(document, name):
        if names_a_secret(key):
            _know(value)


def learn_text(text: str) -> None:
    """Mask from now on the values that a text of any syntax (a config, a script) gives to names of secrets."""
    for name, begin, end, quoted in _given_in(text):
        value = text[begin:end]
        looked_up = text[end - 1 : end + 1] in _LOOKUPS
        # What code calls a key or a token is mostly no secret.
        if quoted or (not looked_up and (_is_sure(name) or _looks_random(value))):
            _know(value)
    for marks, shape in _SHAPES:
        for match in shape.finditer(text) if shape.groups and any(mark in text for mark in marks) else ():
            _know(match[1])


def mask(data: Any) -> Any:
    """Return the same text, or the same data in the same records, without its secrets."""
    return _masked(data, "", None, ())


def take_out(document: Any) -> tuple[Any, list[Any]]:
    """Return the data without its secrets, and the secrets as `[path, value]`; path: keys and numbers from the top."""
    taken: list[Any] = []
    return _masked(document, "", taken, ()), taken


def put_back(document: Any, taken: list[Any]) -> Any:
    """Return the data with the secrets that `take_out` took out of it."""
    for path, value in taken:
        *way, last = path
        place = document
        for step in way:
            place = place[step]
        place[last] = value
    return document


def masked_places(document: Any, name: str = "") -> list[str]:
    """Return the dotted paths of masked values."""
    if isinstance(document, dict):
        below = [(str(key), value) for key, value in document.items()]
    elif isinstance(document, (list, tuple)):
        below = [(str(number), value) for number, value in enumerate(document)]
    else:
        return [name] if document == MASK else []
    return [place for key, value in below for place in masked_places(value, name + "." + key if name else key)]


def _name_of(key: object, table: Mapping[Any, Any], above: str) -> str:
    """Return the name of a key's value: the name of a table of credentials counts for everything in it."""
    table_name = table.get("name")
    if isinstance(table_name, str) and key in _VALUES_OF_A_NAME and names_a_secret(table_name):
        return table_name
    return above if _is_sure(above) else str(key)


def _named_values(data: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield every text of the data with its name."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _named_values(value, _name_of(key, data, name))
    elif isinstance(data, (list, tuple, set)):
        for value in data:
            yield from _named_values(value, name)
    elif isinstance(data, str) or (isinstance(data, int) and not isinstance(data, bool) and _is_sure(name)):
        yield name, str(data)


def _masked(data: Any, name: str, taken: list[Any] | None, path: tuple[Any, ...]) -> Any:
    if isinstance(data, dict):
        return {
            # A key stays if what was taken out is to be put back.
            key if taken is not None or not isinstance(key, str) else mask_text(key): _masked(
                value, _name_of(key, data, name), taken, (*path, key)
            )
            for key, value in data.items()
        }
    if isinstance(data, (list, tuple)):
        return [_masked(value, name, taken, (*path, number)) for number, value in enumerate(data)]
    if names := field_names(data):
        held = {key: getattr(data, key) for key in names}
        masked = {key: _masked(value, _name_of(key, held, name), taken, (*path, key)) for key, value in held.items()}
        changed = {key: value for key, value in masked.items() if value is not held[key]}
        return replace(data, **changed) if changed else data
    if isinstance(data, Enum):
        return data
    hidden = data
    if isinstance(data, str):
        hidden = MASK if names_a_secret(name) and not _is_reference(data) else mask_text(data)
    elif isinstance(data, (int, float)) and not isinstance(data, bool) and _is_sure(name):
        hidden = MASK
    if hidden == data:
        return data
    if taken is not None:
        taken.append([list(path), data])
    return hidden


def field_names(data: Any) -> tuple[str, ...]:
    """Return the names of a record's fields, as `dataclasses.fields` does in ten times the time; none of other data."""
    return tuple(getattr(type(data), "__dataclass_fields__", ()))


def mask_text(text: str) -> str:
    """Return a text without the secrets that are known or have the shape of one."""
    # A report has the same short words thousands of times.
    return _text_masked_once(text) if len(text) < _SHORT else _text_masked(text)


def _text_masked(text: str) -> str:
    text = _shapes_masked(text)
    if _anywhere:
        if not _compiled:
            # One secret may begin with another.
            longest_first = sorted(_anywhere, key=len, reverse=True)
            _compiled.append(re.compile("|".join(map(re.escape, longest_first))))
        text = _compiled[0].sub(MASK, text)
    if not _behind_their_names:
        return text
    kept: list[str] = []
    copied = 0
    for _name, begin, end, _quoted in _given_in(text):
        if begin >= copied and text[begin:end] in _behind_their_names:
            kept += [text[copied:begin], MASK]
            copied = end
    return "".join([*kept, text[copied:]])


def _shapes_masked(text: str) -> str:
    for marks, shape in _SHAPES:
        if any(mark in text for mark in marks):
            text = shape.sub(_hidden, text)
    return text


def _hidden(match: re.Match[str]) -> str:
    secret = match.lastindex or 0
    return match[0][: match.start(secret) - match.start()] + MASK + match[0][match.end(secret) - match.start() :]


# Forgotten with every secret that is learnt.
_text_masked_once = lru_cache(maxsize=8192)(_text_masked)


def _given_in(text: str) -> Iterator[tuple[str, int, int, bool]]:
    """Yield (name, begin and end of its value, whether in quotes) for each name of a secret that has a value."""
    lowered = text.lower()
    if len(lowered) != len(text):  # some capitals become two characters
        lowered = "".join(sign.lower() if sign.isascii() else sign for sign in text)
    if not _TELLS.search(lowered):
        return
    spans = sorted(match.span() for word in _TELLING for match in re.finditer(word, lowered))
    done = 0
    for word_start, word_end in spans:
        if word_start < done:
            continue
        begin, earliest = word_start, max(done, word_start - _LONGEST_NAME)
        while begin > earliest and (text[begin - 1].isalnum() or text[begin - 1] in "_.-"):
            begin -= 1
        end_of_name = _REST_OF_A_NAME.match(text, word_end)
        done = end_of_name.end() if end_of_name else word_end
        name = text[begin:done]
        if not names_a_secret(name):
            continue
        value = (_GIVEN_TO_A_FLAG if name.startswith("--") else _GIVEN).match(text, done)
        if value is not None:
            group = value.lastindex or 0
            yield name, value.start(group), value.end(group), group < 3


def _know(value: str) -> None:
    for text in {value, value.strip(), *value.split("\n")}:
        if not text or _is_reference(text):
            continue
        if len(text) >= _SHORTEST_KNOWN_ANYWHERE and not _PLAIN_WORDS.fullmatch(text):
            if text not in _anywhere:
                _anywhere.add(text)
                _compiled.clear()
                _text_masked_once.cache_clear()
        elif text not in _behind_their_names:
            _behind_their_names.add(text)
            _text_masked_once.cache_clear()


def _is_reference(value: str) -> bool:
    """Return whether a value refers to another: ${HF_TOKEN}, {{ .Values.token }}, <your token>, nothing, or a mask."""
    return _REFERENCE.search(value) is not None


def _looks_random(value: str) -> bool:
    """Return whether a value without quotes is more than a number, a word or an expression of code."""
    return len(value) >= _SHORTEST_KNOWN_ANYWHERE and _LETTERS_AND_DIGITS.match(value) is not None

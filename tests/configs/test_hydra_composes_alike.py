"""Hydra and OmegaConf compose the same files: what we read is what they make of them, or it is open."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from reading import put

from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.hydra_dotlist import overridden
from rlaudit.configs.hydra_program import started_from
from rlaudit.configs.source import Source
from rlaudit.unknown import Unknown

PROGRAM = "import hydra\n\n@hydra.main(config_path='conf', config_name='main')\ndef main(config): ...\n"
DB = {"db/my": "a: 2\nb: 3\n", "db/other": "a: 4\nc: 5\n"}
# A group that lists another one.
SERVER = {
    **DB,
    "server/x": "defaults: [{db: in}, _self_]\nq: 1\n",
    "server/db/in": "a: 6\nz: 7\n",
    "server/db/far": "y: 8\n",
}


def by_hydra(root: Path, *words: str) -> Any:
    with initialize_config_dir(config_dir=str(root / "conf"), version_base=None):
        return OmegaConf.to_container(compose("main", overrides=list(words)), resolve=True)


def by_us(root: Path, *words: str) -> Any:
    if not words:
        path = root / "conf/main.yaml"
        whole = composed(Source(str(path), path.read_text(encoding="utf-8")))
    else:
        script = f"python train.py {shlex.join(words)}\n"
        put(root, {"train.py": PROGRAM, "run.sh": script})
        source = Source(str(root / "run.sh"), script)
        (command,) = overridden(source, "")
        whole = started_from(source, command)
    assert whole is not None and not whole.missing
    return {key: value for key, value in whole.root.plain().items() if key != "hydra"}


def alike(ours: Any, theirs: Any) -> bool:
    """Return whether values and their types are the same; nan is nan."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(alike(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    return type(ours) is type(theirs) and (ours == theirs or repr(ours) == repr(theirs) == "nan")


def wrote(root: Path, main: str, others: dict[str, str] | None = None) -> Path:
    """Write a main config and others into a folder; .git keeps what is read inside."""
    put(
        root,
        {".git/HEAD": "", **{f"conf/{name}.yaml": text for name, text in {"main": main, **(others or {})}.items()}},
    )
    return root


@pytest.mark.filterwarnings("ignore:.*Defaults list is missing `_self_`")
@pytest.mark.parametrize(
    ("main", "others", "words"),
    [
        pytest.param(main, others, words.split(), id=name)
        for name, main, others, words in [
            ("_self_ last", "defaults: [base, _self_]\na: 1\n", {"base": "a: 2\nb: 3\n"}, ""),
            ("_self_ first", "defaults: [_self_, base]\na: 1\n", {"base": "a: 2\nb: 3\n"}, ""),
            ("_self_ not written", "defaults: [base]\na: 1\n", {"base": "a: 2\nb: 3\n"}, ""),
            ("three deep", "defaults: [b]\na: 1\n",
                {"b": "defaults: [c]\na: 2\nb: 2", "c": "a: 3\nb: 3\nc: 3"}, ""),
            ("an empty file", "defaults: [base]\na: 1\n", {"base": "# nothing yet\n"}, ""),
            ("a file with its ending", "defaults: [base.yaml]\na: 1\n", {"base": "b: 1"}, ""),
            ("lists are replaced", "defaults: [base]\na: [1]\n", {"base": "a: [2, 3]"}, ""),
            ("null over a mapping", "defaults: [base]\na: null\n", {"base": "a: {b: 1}"}, ""),
            ("??? keeps what is below", "defaults: [base]\na: ???\n", {"base": "a: 3"}, ""),
            ("a group", "defaults: [db: my]\n", DB, ""),
            ("a group by its path", "defaults: [server/db: in]\n", SERVER, ""),
            ("a file of a group", "defaults: [db/my]\n", DB, ""),
            ("a group in a group", "defaults: [server: x]\n", SERVER, ""),
            ("a sibling in a group", "defaults: [s: x]\n", {"s/x": "defaults: [y]\na: 1", "s/y": "a: 2\nb: 2"}, ""),
            ("a group from the root", "defaults: [s: x]\n", {**DB, "s/x": "defaults: [/db: my]\nq: 1"}, ""),
            ("a file from the root", "defaults: [s: x]\n", {"s/x": "defaults: [/top]\nq: 1", "top": "a: 1"}, ""),
            ("a package", "defaults: [db@p.q: my]\n", DB, ""),
            ("a package of a file", "defaults: [db/my@p.q]\n", DB, ""),
            ("a group twice", "defaults: [{db@p: my}, {db@q: other}]\n", DB, ""),
            ("a package in a group", "defaults: [s: x]\n", {**DB, "s/x": "defaults: [/db@p: my]\nq: 1"}, ""),
            ("_global_", "defaults: [db@_global_: my]\n", DB, ""),
            ("_global_ and keys", "defaults: [s: x]\n", {**DB, "s/x": "defaults: [/db@_global_.d: my]\nq: 1"}, ""),
            ("_here_", "defaults: [s: x]\n", {**DB, "s/x": "defaults: [/db@_here_: my]\nq: 1"}, ""),
            ("_group_", "defaults: [s: x]\n", {**DB, "s/x": "defaults: [/db@_group_.d: my]\nq: 1"}, ""),
            ("a package in the file", "defaults: [db: my]\n", {"db/my": "# @package p.q\na: 1"}, ""),
            ("it counts from the root", "defaults: [s: x]\n",
                {"s/x": "defaults: [db: my]\nq: 1", "s/db/my": "# @package p.q\na: 1"}, ""),
            ("the list's counts before it", "defaults: [db@r: my]\n", {"db/my": "# @package _global_\na: 1"}, ""),
            ("what a global file lists", "defaults: [s: x]\n",
                {**DB, "s/x": "# @package _global_\ndefaults: [/db: my]\nq: 1"}, ""),
            ("optional", "defaults: [optional db: none, optional db@p: my]\na: 1\n", DB, ""),
            ("several of a group", "defaults: [db: [my, other]]\n", DB, ""),
            ("no choice", "defaults: [db: null]\na: 1\n", DB, ""),
            ("a name that follows", "defaults: [{m: x}, {db: '${m}_y'}]\n",
                {"m/x": "a: 2", "db/x_y": "a: 3"}, ""),
            ("an override", "defaults: [base, override db: other]\n", {**DB, "base": "defaults: [db: my]"}, ""),
            ("an override from the root", "defaults: [base, override /db: other]\n",
                {**DB, "base": "defaults: [db: my]"}, ""),
            ("an override of a package", "defaults: [base, override db@p: other]\n",
                {**DB, "base": "defaults: [db@p: my]"}, ""),
            ("an override in a group", "defaults: [s: x]\n",
                {**SERVER, "s/x": "defaults: [/server@v: x, override /server/db@v.db: far]\nq: 1"}, ""),
            ("an experiment", "defaults: [{db: my}, _self_, {experiment: e}]\na: 1\n",
                {**DB, "experiment/e": "# @package _global_\ndefaults: [override /db: other]\na: 5"}, ""),
            ("an added experiment", "defaults: [db: my]\na: 1\n",
                {**DB, "experiment/e": "# @package _global_\ndefaults: [override /db: other]\na: 5"}, "+experiment=e"),
            ("a choice", "defaults: [db: my]\n", DB, "db=other"),
            ("a choice and a value", "defaults: [db: my]\n", DB, "db.c=7 db=other"),
            ("a choice before an override", "defaults: [base, override db: my]\n",
                {**DB, "base": "defaults: [db: my]"}, "db=other"),
            ("a choice of none", "defaults: [db: null]\n", DB, "db=my"),
            ("a choice of what must be chosen", "defaults: [db: '???']\n", DB, "db=my"),
            ("a choice of several", "defaults: [db: my]\n", DB, "db=[my,other]"),
            ("a choice in a package", "defaults: [{db@p: my}, {db@q: my}]\n", DB, "db@q=other"),
            ("a choice in a group", "defaults: [server: x]\n", SERVER, "server/db=far"),
            ("a choice that is followed", "defaults: [{m: x}, {db: '${m}_y'}]\n",
                {"m/x": "a: 2", "db/x_y": "a: 3", "m/z": "b: 1", "db/z_y": "c: 4"}, "m=z"),
            ("an added group", "a: 1\n", DB, "+db=my"),
            ("an added group in a package", "a: 1\n", DB, "+db@p=my"),
            ("a removed group", "defaults: [db: my]\na: 1\n", DB, "~db"),
            ("values", "a: {b: 1, c: 2}\n", {}, "a.b=5 +a.d=6 ++a.e=7 ++a.c=8 a.b=9"),
            ("a removed key", "defaults: [db: my]\na: {b: 1, c: 2}\n", DB, "~db.a ~a.b=1"),
            ("removed and set", "a: {b: 1, c: 2}\n", {}, "~a +a.e=1"),
            ("a mapping merges", "a: {b: 1, c: 2}\n", {}, "a={b:3} +f={e:3}"),
            ("an element of a list", "a: [1, {b: 2}]\n", {}, "a.0=3 a.1.b=4"),
            ("a reference to what is overridden", "a: {b: 1}\nc: ${a.b}\n", {}, "a.b=7"),
            ("references on the line", "a: {b: 1, c: 2}\nd: 3\n", {}, "a.c=${.b} d=x_${a.b}_y"),
            ("references to a group", "defaults: [db: my]\nc: ${db.a}\nd: ${oc.select:db.z,8}\n", DB, ""),
            ("references from a group", "defaults: [db@p.q: my]\nc: 4\n",
                {"db/my": "a: ${.b}\nb: ${c}\nk: {z: '${..a}'}"}, ""),
            ("relative references", "a: {b: 1, c: '${.b}', l: ['${..b}']}\nd: {e: '${..a.b}'}\nf: ${a}\n", {}, ""),
            ("nested references", "a: {b: [1, 2]}\nk: b\nc: ${a.${k}}\nd: ${a[b][1]}\ne: '\\${a.b}'\n", {}, ""),
            ("references in text", "a: null\nb: true\nc: 1.0\nd: x${a}${b}${c}\n", {}, ""),
            ("defaults of a variable", "a: ${oc.env:RLAUDIT_NONE,x y}\nb: ${oc.env:RLAUDIT_NONE,null}\n", {}, ""),
            ("decoded text", "a: ${oc.decode:'3'}\nb: ${oc.decode:${oc.env:RLAUDIT_NONE,'1e-3'}}\n", {}, ""),
            ("YAML's scalars",
                "a: [1e5, 1e-3, yes, on, No, 0x10, 010, 1_000, .5, 5., .inf, ~, Null, 1:30, TRUE, 0o17, y]\n"
                "b: [none, '1', 0b11, 1.5e+3, +3, 2020-01-01]\nc: &c {x: 1}\nd: {<<: *c, y: 2}\n", {}, ""),
        ]
    ],
)  # fmt: skip
def test_a_config_is_composed_as_hydra_does(
    main: str, others: dict[str, str], words: list[str], tmp_path: Path
) -> None:
    root = wrote(tmp_path, main, others)
    theirs, ours = by_hydra(root, *words), by_us(root, *words)
    assert alike(ours, theirs), (ours, theirs)


VALUES = (
    "1", "-1", "+3", "007", "1_000", "1e-3", "1e5", "1.e5", ".5", "5.", "1e", "1.2.3", "0x10", "inf", "-inf", "NaN",
    "true", "True", "yes", "null", "Null", "none", "None", "'1'", '"x y"', "'it\\'s'", "", "a b", "a\\,b", "a-b", "a:b",
    "x@y", "%5", "*", "- 3", "$x", "/data/x", "Qwen/Qwen3-8B", "http://a:80/b", " 3", "[]", "{}", "[1,2]", "[ 1 , 2 ]",
    "[a b, c]", "['a',\"b\"]", "[true,null,1e3]", "[1,[2,{k: v}]]", "[none,None]", "{x:1,y:[1,2]}", "{a: {b: null}}",
    "{k:a/b}", "[Qwen/Qwen3-8B]",
)  # fmt: skip


def test_a_value_on_the_command_line_has_the_type_that_hydra_gives_it(tmp_path: Path) -> None:
    root = wrote(tmp_path, "k: 0\n")
    words = [f"+v{at}={value}" for at, value in enumerate(VALUES)]
    theirs, ours = by_hydra(root, *words), by_us(root, *words)
    assert not [
        (value, ours[key], theirs[key])
        for key, value in zip([*theirs][1:], VALUES, strict=True)
        if not alike(ours[key], theirs[key])
    ]


def test_a_switch_from_a_variable_is_text_to_omegaconf_and_open_to_us(tmp_path: Path) -> None:
    root = wrote(tmp_path, "a: ${oc.env:RLAUDIT_NONE,false}\nb: ${oc.env:RLAUDIT_NONE,8}\n")
    assert by_hydra(root) == {"a": "False", "b": "8"}
    ours = by_us(root)
    assert isinstance(ours["a"], Unknown) and "counts as true" in ours["a"].reason
    # vLLM and pydantic read a number in the text.
    assert ours["b"] == 8


GROUPS, NAMES = ("g", "h"), ("x", "y")
CONTENT = st.dictionaries(
    st.sampled_from("abc"),
    st.one_of(st.integers(0, 3), st.none(), st.dictionaries(st.sampled_from("ab"), st.integers(4, 7))),
)
PACKAGES = st.sampled_from(("", "@p", "@p.q", "@_global_", "@_here_"))


@st.composite
def listings(draw: st.DrawFn) -> list[Any]:
    """Draw a defaults list: each group once, in any package, `_self_` in any place or nowhere."""
    entries: list[Any] = [
        {group + draw(PACKAGES): draw(st.sampled_from((*NAMES, None, [*NAMES])))}
        for group in draw(st.lists(st.sampled_from(GROUPS), unique=True))
    ]
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), "_self_")
    return entries


@pytest.mark.filterwarnings("ignore:.*Defaults list is missing `_self_`")
@settings(max_examples=40)
@given(
    main=CONTENT, listed=listings(), inner=listings(), draw=st.data(),
    header=st.sampled_from(("", "# @package _global_\n", "# @package r\n")),
    files=st.fixed_dictionaries({f"{group}/{name}": CONTENT for group in GROUPS for name in NAMES}),
)  # fmt: skip
def test_any_list_of_groups_is_composed_as_hydra_does(
    main: dict[str, Any], listed: list[Any], inner: list[Any], header: str, files: dict[str, Any], draw: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    # x of g is a config with a list: its groups lie in g/g and g/h, and what has a slash in front in h.
    texts = {name: OmegaConf.to_yaml(OmegaConf.create(content)) for name, content in files.items()}
    texts |= {f"g/{name}": text for name, text in texts.items()}
    texts["g/x"] = header + OmegaConf.to_yaml(OmegaConf.create({"defaults": inner, **files["g/x"]}))
    root = wrote(
        tmp_path_factory.mktemp("any"), OmegaConf.to_yaml(OmegaConf.create({"defaults": listed, **main})), texts
    )
    chosen = [key for entry in listed if isinstance(entry, dict) for key in entry if "_" not in key]
    words = [f"{key}={draw.draw(st.sampled_from(NAMES))}" for key in chosen if draw.draw(st.booleans())]
    theirs, ours = by_hydra(root, *words), by_us(root, *words)
    assert alike(ours, theirs), (ours, theirs)

"""Files that nobody should hand to a reader of configs: texts that are built to explode, and what no file should be."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

DEEP = 20_000
WIDE = 40_000
PIPELINERL = "vllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\n    max-num-seqs: 64\n"
VERL = "actor_rollout_ref:\n  rollout:\n    name: vllm\n    temperature: 0.7\n"
NEMO = "policy:\n  generation:\n    vllm_cfg: {precision: bfloat16}\n    temperature: 0.7\n"
SERVE = "vllm serve some/model"


def traps(folder: Path) -> dict[str, tuple[str, ...]]:
    """Everything made in `folder`: the paths of a command line by what they are."""
    texts = {name: (str(_written(folder / name, text)),) for name, text in _texts().items()}
    return texts | dict(_file_system(folder)) | dict(_checkpoints(folder))


def _written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def _doubling(first: str, line: Callable[[int], str], count: int) -> str:
    return first + "".join(line(number) for number in range(1, count))


def _texts() -> dict[str, str | bytes]:
    """Texts by file name."""
    laughs = _doubling("a0: &a0 [x, x]\n", lambda n: f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n", 40)
    merges = _doubling("a0: &a0 {k: 1}\n", lambda n: f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n", 40)
    joins = _doubling("v0: x\n", lambda n: f"v{n}: ${{v{n - 1}}}${{v{n - 1}}}\n", 38)
    trees = _doubling("v0: {a: 1, b: 2}\n", lambda n: f"v{n}: {{a: '${{v{n - 1}}}', b: '${{v{n - 1}}}'}}\n", 38)
    shell = _doubling("V0=x\n", lambda n: f'V{n}="$V{n - 1}$V{n - 1}"\n', 40)
    arrays = _doubling("V0=(x y)\n", lambda n: f'V{n}=("${{V{n - 1}[@]}}" "${{V{n - 1}[@]}}")\n', 40)
    python = _doubling("v0 = ['x']\n", lambda n: f"v{n} = [*v{n - 1}, *v{n - 1}]\n", 40)
    sums = _doubling("v0 = 'x'\n", lambda n: f"v{n} = v{n - 1} + v{n - 1}\n", 40)
    flags = " ".join(f"--flag-{number} {number}" for number in range(WIDE))
    return {
        "laughs.yaml": laughs + PIPELINERL + "    x: *a39\n",
        "merges.yaml": merges + PIPELINERL + "    <<: *a39\n",
        "joins.yaml": joins + VERL + "    dtype: ${v37}\n",
        "trees.yaml": trees + VERL + "    engine_kwargs: {vllm: '${v37}'}\n",
        "cycle.yaml": VERL + "    dtype: ${actor_rollout_ref.rollout.load_format}\n    load_format: ${.dtype}\n",
        "itself.yaml": VERL + "    engine_kwargs: ${actor_rollout_ref}\n",
        "alias-of-itself.yaml": "vllm_config: &a\n  vllm_kwargs: &b {x: *a, y: *b}\n",
        "deep-flow.yaml": PIPELINERL + "x: " + "[" * DEEP + "]" * DEEP,
        "deep-block.yaml": PIPELINERL + "".join(" " * depth + "a:\n" for depth in range(1, 1500)),
        "deep-dashes.yaml": PIPELINERL + "x:\n  " + "- " * DEEP + "1\n",
        "deep.json": '{"vllm_config": ' + '{"a":' * DEEP + "1" + "}" * DEEP + "}",
        "deep.toml": "[inference.vllm]\nx = " + "[" * DEEP + "]" * DEEP,
        "deep-keys.toml": "[inference.vllm]\n" + ".".join("a" * DEEP) + " = 1\n",
        "deep.py": "from vllm import LLM\nLLM(model=" + "(" * DEEP + "1" + ")" * DEEP + ")\n",
        "sum.py": "from vllm import LLM\nLLM(model='a'" + " + 'a'" * DEEP + ")\n",
        "negated.py": "from vllm import LLM\nLLM(seed=" + "-" * DEEP + "1)\n",
        "doubling.py": "from vllm import LLM\n" + python + "LLM(model='m', allowed_media_domains=v39)\n",
        "sums.py": "from vllm import LLM\n" + sums + "LLM(model=v39)\n",
        "power.py": "from vllm import LLM\nLLM(model='a' * 10**10, seed=9**9**9, max_num_seqs=1 << 10**9)\n",
        "digits.py": "from vllm import LLM\nLLM(seed=" + "9" * 10_000 + ")\n",
        "nul.py": "from vllm import LLM\nLLM(model='a\0b')\n",
        "doubling.sh": shell + f"{SERVE} --seed $V39\n",
        "arrays.sh": arrays + f'{SERVE} "${{V39[@]}}"\n',
        "loop.sh": f"A=$B\nB=$A\nA=$B\n{SERVE} --seed $A\n",
        "own-default.sh": "A=${A:-${A:-" * 3000 + "1" + "}}" * 3000 + f"\n{SERVE} --seed $A\n",
        "open-quote.sh": f"{SERVE} --seed 'never closed\n" + "# words\n" * 5000,
        "open-heredoc.sh": f"cat <<EOF\n{SERVE}\n" * 2000,
        "substitutions.sh": f"{SERVE} --seed " + "$(echo " * 5000 + "1" + ")" * 5000 + "\n",
        "continued.sh": f"{SERVE} \\\n" + " --seed 1 \\\n" * 20_000,
        "backslashes.sh": f"{SERVE} " + "\\" * 100_000 + "\n",
        "flags.sh": f"{SERVE} {flags}\n",
        "reads-zero.sh": f"{SERVE} --config zero.yaml\n",
        "reads-pipe.sh": f"{SERVE} --config pipe.yaml\n",
        "reads-folder.sh": f"{SERVE} --config .\n",
        "inherits-itself.yaml": "defaults: inherits-itself.yaml\n" + NEMO,
        "inherits-pipe.yaml": "defaults: pipe.yaml\n" + NEMO,
        "inherits-zero.yaml": "defaults: zero.yaml\n" + NEMO,
        "inherits-folder.yaml": "defaults: ./\n" + NEMO,
        "inherits-far.yaml": "defaults: ../../../../../../../../../../dev/zero.yaml\n" + NEMO,
        "hydra-itself.yaml": "defaults: [hydra-itself, hydra-itself, _self_]\n" + PIPELINERL,
        "hydra-pipe.yaml": "defaults: [pipe, zero, {a: pipe}]\n" + PIPELINERL,
        "hydra-twice.yaml": "defaults: [hydra-twice-2, hydra-twice-3]\n" + PIPELINERL,
        "hydra-twice-2.yaml": "defaults: [hydra-twice-3, hydra-twice-4, hydra-twice-3, hydra-twice-4]\nx: 1\n",
        "hydra-twice-3.yaml": "defaults: [hydra-twice-2, hydra-twice-4, hydra-twice-2, hydra-twice-4]\nx: 1\n",
        "hydra-twice-4.yaml": "defaults: [hydra-twice-2, hydra-twice-3, hydra-twice-2, hydra-twice-3]\nx: 1\n",
        "wide.yaml": NEMO + "".join(f"k{number}: {number}\n" for number in range(WIDE)),
        "wide.json": '{"vllm_config": {"vllm_kwargs": {' + ",".join(f'"k{n}": {n}' for n in range(WIDE)) + "}}}",
        "long-line.yaml": PIPELINERL + "x: " + "a" * 1_900_000,
        "long-line.log": "non-default args: {" + "'a': 1, " * 200_000,
        "open-brace.log": "non-default args: " + "{'a': " * 100_000,
        "config.log": "Initializing a V1 LLM engine (v0.18.1) with config: " + "model='a', " * 100_000,
        "spaces.yaml": PIPELINERL + "x:" + " " * 1_000_000 + "1",
        "comments.sh": "#!/bin/sh\n" + "# rlaudit: ignore[" * 50_000,
        "comments.yaml": PIPELINERL + "# rlaudit: ignore[raw-logprobs" * 50_000,
        "compose.yaml": "services:\n" + f"  a: {{image: vllm/vllm-openai, command: {SERVE}}}\n" * 3000,
        "fifty-megabytes.yaml": PIPELINERL.encode() + b"# " + b"x" * 50_000_000,
        "zeros.yaml": b"\0" * 1_000_000,
        "latin.yaml": PIPELINERL.encode() + "x: \u00fc\n".encode("latin-1"),
        "utf16.yaml": PIPELINERL.encode("utf-16"),
        "half-utf16.yaml": PIPELINERL.encode("utf-16")[:-1],
        "surrogates.json": '{"vllm_config": {"vllm_kwargs": {"\\ud800": "\\udfff"}}}',
        "numbers.json": '{"vllm_config": {"vllm_kwargs": {"seed": 1e999, "a": -0, "b": ' + "9" * 9999 + "}}}",
        "keys.yaml": PIPELINERL + "    ? [a, b]\n    : 1\n    ? {c: d}\n    : 2\n    null: 3\n    .nan: 4\n",
        "tags.yaml": PIPELINERL + "    seed: !!python/object/apply:os.system [exit 9]\n    x: !<tag:x> {a: 1}\n",
        "marks.yaml": "\ufeff" + PIPELINERL,
        "only-a-mark.yaml": b"\xef\xbb\xbf", "empty.yaml": "",
        "escapes.yaml": PIPELINERL + '    "\\e[2J\\a\\x00": "\\u2028\\x85"\n',
    }  # fmt: skip


def _file_system(folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is no regular file, or is one under a name that hurts. What the system refuses to make is left out."""
    (folder / "round").symlink_to(folder, target_is_directory=True)

    def one(name: str, make: Callable[[Path], object]) -> Iterator[tuple[str, tuple[str, ...]]]:
        path = folder / name
        with contextlib.suppress(OSError, ValueError):
            make(path)
            yield name.encode("unicode_escape").decode(), (str(path),)

    yield from one("pipe.yaml", os.mkfifo)
    yield from one("zero.yaml", lambda path: path.symlink_to("/dev/zero"))
    yield from one("full.yaml", lambda path: path.symlink_to("/dev/full"))
    yield from one("terminal.yaml", lambda path: path.symlink_to("/dev/tty"))
    yield from one("memory.yaml", lambda path: path.symlink_to("/proc/self/mem"))
    yield from one("dangling.yaml", lambda path: path.symlink_to(folder / "nowhere"))
    yield from one("loop.yaml", lambda path: path.symlink_to(path))
    yield from one("denied.yaml", lambda path: (path.write_text(PIPELINERL), path.chmod(0)))
    yield from one("denied", lambda path: path.mkdir(mode=0))
    yield from one("a folder.yaml", lambda path: path.mkdir())
    yield from one("socket.yaml", _socket)
    yield from one("new\nline.yaml", lambda path: path.write_text(PIPELINERL))
    yield from one("\x1b[31mred.yaml", lambda path: path.write_text(PIPELINERL))
    yield from one(os.fsdecode(b"not-\xff-text.yaml"), lambda path: path.write_text(PIPELINERL))
    yield from one("-", lambda path: path.write_text(PIPELINERL))
    yield "no such file", (str(folder / "absent.yaml"),)
    yield "a name with a NUL", (str(folder / "a\0b.yaml"),)
    yield "a name too long", (str(folder / ("a" * 5000)),)
    yield "no name", ("",)
    yield "a glob", (str(folder / "*.yaml"),)
    yield "the same file ten times", (str(folder / "empty.yaml"),) * 10


def _checkpoints(folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Configs of models whose own files are hostile, or whose name no file could have."""
    deep = "[" * 100_000
    for name, text in (("deep", deep), ("list", "[1]"), ("numbers", '{"top_k": 1e999, "dtype": [], "top_p": "x"}')):
        model = folder / f"model-{name}"
        model.mkdir()
        for file in ("config.json", "generation_config.json"):
            _written(model / file, text)
        config = _written(folder / f"model-{name}.yaml", f"model_path: {model}\n{PIPELINERL}")
        yield config.name, (str(config),)
    for name, model_name in (("long", "a" * 5000), ("nul", '"a\\0b"'), ("far", "../" * 400)):
        config = _written(folder / f"model-{name}.yaml", f"model_path: {model_name}\n{PIPELINERL}")
        yield config.name, (str(config),)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))

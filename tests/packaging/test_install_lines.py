"""No line that a user may copy installs rlaudit from a place that is not ours."""

import os
from pathlib import Path

import pytest
from install_lines import unowned_installs

ROOT = Path(__file__).parents[2]
URL = "git+https://github.com/<OWNER>/rlaudit@v0.4.0"
# What a working copy has beside what is tracked (.gitignore).
NOT_OURS = {".git", ".hypothesis", "__pycache__", "build", "dist", "runs"}
GENERATED = ("_cache", ".egg-info")
NO_TEXT = (".png", ".gz", ".parquet", ".jsonl")
# Where a line may be nothing but the name: lists of packages.
OF_LISTS = {".yml", ".yaml", ".toml", ".txt", ".cfg", ".in", ".sh", ".md", ""}


def tracked_texts() -> list[Path]:
    """Every text file of the tree, without asking git: a source distribution has none."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS and not name.endswith(GENERATED)]
        folders[:] = [name for name in folders if not name.startswith(".venv")]
        found += [Path(folder, name) for name in files if not name.endswith(NO_TEXT)]
    # These two hold such lines.
    return [file for file in found if file.name not in {"install_lines.py", "test_install_lines.py"}]


def test_no_file_installs_a_name_that_is_not_owned() -> None:
    texts = tracked_texts()
    found = []
    for file in texts:
        text = file.read_text(encoding="utf-8", errors="ignore")
        if "rlaudit" in text.lower():
            found += [f"{file.relative_to(ROOT)}: {line}" for line in unowned_installs(text, file.suffix in OF_LISTS)]
    assert len(texts) > 1500
    # The extra of the tests names another extra of the same project, which no index is asked for.
    assert found == ["pyproject.toml: rlaudit[remote]"]


@pytest.mark.parametrize(
    "line",
    [
        "pip install rlaudit",
        "      - run: pip install -q rlaudit==0.4.0",
        "RUN pip3 install --no-cache-dir 'rlaudit[remote]>=0.4'",
        "pip3.12 install numpy rlaudit",
        "python -m pip install --upgrade rlaudit",
        "pip --quiet install rlaudit",
        "%pip install rlaudit",
        "pip download rlaudit",
        "subprocess.run([sys.executable, '-m', 'pip', 'install', 'rlaudit'])",
        'RUN ["pip", "install", "rlaudit"]',
        "pip install \\\n  -q \\\n  rlaudit",
        "# The image has rlaudit (pip install\n# rlaudit) and a compiler.",
        "run: >\n  pip install\n  rlaudit",
        "Type `pip install rlaudit`.",
        'raise NotFinished("not here", "pip install \'rlaudit[remote]\' brings it")',
        "Install rlaudit[ray] on the nodes.",
        "uv pip install RLaudit",
        "uv --offline pip install --python x rlaudit",
        "uv add rlaudit",
        "uv add --dev 'rlaudit>=0.4'",
        "uvx rlaudit inspect conf",
        "uvx rlaudit@latest inspect conf",
        "uvx --python 3.12 --from rlaudit rlaudit inspect",
        "uvx --from=rlaudit==0.4.0 rlaudit inspect",
        "uvx --with rlaudit pytest",
        "uv tool install rlaudit",
        "uv tool run rlaudit inspect",
        "uv run --with rlaudit rlaudit inspect",
        "uv run --with=numpy,rlaudit python x.py",
        "pipx install rlaudit",
        "pipx run rlaudit inspect",
        "pipx run --spec rlaudit==0.4.0 rlaudit inspect",
        "pipx inject tools rlaudit",
        "poetry add rlaudit",
        "conda install -c conda-forge rlaudit",
        "      - uses: OWNER/rlaudit@v0.4.0",
        "  - uses: 'someone/rlaudit@0123456789abcdef0123456789abcdef01234567'",
        "  - repo: https://github.com/OWNER/rlaudit",
        "  - repo: git@example.org:someone/rlaudit",
        "    additional_dependencies: [rlaudit]",
        "    additional_dependencies:\n      - rlaudit\n",
        "rlaudit==0.4.0",
        "rlaudit",
        "rlaudit>=0.4  # the auditor",
        'dependencies = ["vllm", "rlaudit>=0.4"]',
        "pip install git+https://github.com/rlaudit/rlaudit",
        "pip install 'rlaudit @ git+https://github.com/OWNER/rlaudit@v0.4.0'",
        "uvx --from git+ssh://git@gitlab.com:team/rlaudit.git rlaudit",
        "image: rlaudit:latest",
        "FROM someone/rlaudit:0.4",
        "docker run --gpus all rlaudit ablate quick",
    ],
)
def test_a_line_that_installs_an_unowned_name_is_found(line: str) -> None:
    assert unowned_installs(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install .",
        "pip install . && rlaudit ablate recipes/v0-to-v1.yaml",
        "pip install '.[test]' && pytest",
        f"      - run: pip install 'rlaudit @ {URL}'",
        f"pip install 'rlaudit[remote] @ {URL}'",
        f"uvx --from '{URL}' rlaudit inspect conf",
        f"uv tool install '{URL}'",
        f"uv tool install rlaudit --from {URL}",
        f"pipx run --spec {URL} rlaudit inspect",
        "uv tool install . && rlaudit demo",
        "uv run rlaudit inspect conf",
        "uv run --with numpy rlaudit inspect conf",
        'exec uv pip install --python "$home/environment" "$GITHUB_ACTION_PATH" # then rlaudit starts',
        "      - uses: <OWNER>/rlaudit@<COMMIT>",
        "      - uses: ./",
        "  - repo: https://github.com/<OWNER>/rlaudit",
        "name: rlaudit",
        "image: registry.example.com/rlaudit:latest",
        "rlaudit inspect conf",
        "In `~/.cache/rlaudit`, which `pip install .` made.",
    ],
)
def test_a_line_that_cannot_reach_an_unowned_name_is_none(line: str) -> None:
    assert unowned_installs(line) == []

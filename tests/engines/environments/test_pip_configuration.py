from pathlib import Path

import pytest

from rlaudit.engines.environments.pip_configuration import read_package_sources


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment in which no file of this machine is read."""
    monkeypatch.setattr("sys.prefix", str(tmp_path / "rlaudit"))
    # /etc/pip.conf is read all the same, and may name certificates.
    return {
        "SSL_CERT_FILE": "/mine.pem",
        "HOME": str(tmp_path),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
    }


def configured(tmp_path: Path, text: str, home: dict[str, str]) -> dict[str, str]:
    file = tmp_path / "pip.conf"
    file.write_text(text)
    return {**home, "PIP_CONFIG_FILE": str(file)}


PIP, UV = "https://pip.example", "https://uv.example"
INDEXES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "an index of a file": (f"[global]\nindex-url = {PIP}/\n", {}, {"UV_DEFAULT_INDEX": PIP}),
    "[install] before [global]": (
        f"[install]\nindex-url = {PIP}\n[global]\nindex-url = https://other.example\n",
        {},
        {"UV_DEFAULT_INDEX": PIP},
    ),
    "a variable before a file": (
        "[global]\nindex-url = https://other.example\n",
        {"PIP_INDEX_URL": PIP},
        {"UV_DEFAULT_INDEX": PIP},
    ),
    "uv's own before pip's": ("", {"PIP_INDEX_URL": PIP, "UV_INDEX_URL": UV}, {}),
    "several indexes together": (
        "",
        {"PIP_EXTRA_INDEX_URL": f"{PIP} {UV}"},
        {"UV_INDEX": f"{PIP} {UV}", "UV_INDEX_STRATEGY": "unsafe-best-match"},
    ),
    "folders, but for those that are missing": (
        "[global]\nfind-links = FOLDER/a,b\n    FOLDER/gone\nextra-index-url = file://FOLDER/nowhere\n",
        {},
        {"UV_FIND_LINKS": "file://FOLDER/a%2Cb"},
    ),
    "no index but a folder": ("[global]\nno-index = yes\nfind-links = FOLDER\n", {}, {"UV_FIND_LINKS": "FOLDER"}),
    "a file that cannot be read": ("index-url = no section above me\n", {}, {}),
}


@pytest.mark.parametrize("case", INDEXES)
def test_pip_s_sources_are_handed_to_uv(case: str, tmp_path: Path, home: dict[str, str]) -> None:
    text, variables, expected = INDEXES[case]
    (tmp_path / "a,b").mkdir()
    environ = {**configured(tmp_path, text.replace("FOLDER", str(tmp_path)), home), **variables}
    sources = read_package_sources(environ)
    named = {name: value.replace("FOLDER", str(tmp_path)) for name, value in expected.items()}
    assert sources.uv_variables(environ) == named
    assert sources.uv_arguments() == (["--no-index"] if case == "no index but a folder" else [])


def test_pip_s_file_in_rlaudit_s_own_environment_counts_and_that_in_an_activated_one_does_not(
    tmp_path: Path, home: dict[str, str]
) -> None:
    for name in ("rlaudit", ".venv"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pip.conf").write_text(f"[global]\nindex-url = https://{name}.example\n")
    assert read_package_sources({**home, "VIRTUAL_ENV": str(tmp_path / ".venv")}).index == "https://rlaudit.example"


def test_a_password_in_an_address_is_never_on_a_command_line(home: dict[str, str]) -> None:
    secret = "https://user:PASSWORD@{}.example/simple"
    environ = {
        **home,
        "PIP_INDEX_URL": secret.format("one"),
        "PIP_EXTRA_INDEX_URL": secret.format("two"),
        "PIP_FIND_LINKS": secret.format("three") + "," + secret.format("four"),
    }
    sources = read_package_sources(environ)
    assert sources.uv_arguments() == []
    assert sum(value.count("PASSWORD") for value in sources.uv_variables(environ).values()) == 4
    assert "," not in sources.uv_variables(environ)["UV_FIND_LINKS"]


def test_certificates_are_given_to_uv_only_where_the_user_set_none(home: dict[str, str]) -> None:
    sources = read_package_sources({**home, "PIP_CERT": "/ca.pem"})
    assert sources.uv_variables({}) == {"SSL_CERT_FILE": "/ca.pem"}
    assert sources.uv_variables({"SSL_CERT_FILE": "/mine.pem"}) == {}

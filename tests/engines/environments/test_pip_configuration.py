from pathlib import Path

import pytest

from rlaudit.engines.environments.pip_configuration import DEFAULT_INDEX, PackageSources, read_package_sources


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment in which no file of this machine is read."""
    # /etc/pip.conf is read all the same, and may name certificates.
    return {
        "SSL_CERT_FILE": "/mine.pem",
        "HOME": str(tmp_path),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        "VIRTUAL_ENV": str(tmp_path / "venv"),
    }


def configured(tmp_path: Path, text: str, home: dict[str, str]) -> dict[str, str]:
    file = tmp_path / "pip.conf"
    file.write_text(text)
    return {**home, "PIP_CONFIG_FILE": str(file)}


def test_an_index_of_pip_becomes_uvs_default_index(tmp_path: Path, home: dict[str, str]) -> None:
    environ = configured(tmp_path, "[global]\nindex-url = https://mirror.example/simple/\n", home)
    sources = read_package_sources(environ)
    assert sources.index == "https://mirror.example/simple"
    assert sources.uv_variables(environ) == {"UV_DEFAULT_INDEX": "https://mirror.example/simple"}


def test_install_is_more_special_than_global(tmp_path: Path, home: dict[str, str]) -> None:
    text = "[install]\nindex-url = https://install.example\n[global]\nindex-url = https://global.example\n"
    assert read_package_sources(configured(tmp_path, text, home)).index == "https://install.example"


def test_a_variable_wins_over_a_file(tmp_path: Path, home: dict[str, str]) -> None:
    environ = configured(tmp_path, "[global]\nindex-url = https://file.example\n", home)
    environ["PIP_INDEX_URL"] = "https://variable.example"
    assert read_package_sources(environ).index == "https://variable.example"


def test_what_the_user_tells_uv_is_left_to_uv(home: dict[str, str]) -> None:
    environ = {**home, "PIP_INDEX_URL": "https://pip.example", "UV_INDEX_URL": "https://uv.example"}
    sources = read_package_sources(environ)
    assert sources.index == "https://uv.example"
    assert sources.uv_arguments() == []
    assert sources.uv_variables(environ) == {}


def test_several_indexes_are_searched_together_as_pip_does(home: dict[str, str]) -> None:
    environ = {**home, "PIP_EXTRA_INDEX_URL": "https://one.example https://two.example"}
    assert read_package_sources(environ).uv_variables(environ) == {
        "UV_INDEX": "https://one.example https://two.example",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


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


def test_folders_that_are_missing_are_left_out(tmp_path: Path, home: dict[str, str]) -> None:
    (tmp_path / "wheels").mkdir()
    text = f"[global]\nfind-links = {tmp_path / 'wheels'}\n    {tmp_path / 'gone'}\n"
    text += f"extra-index-url = file://{tmp_path}/nowhere\n"
    sources = read_package_sources(configured(tmp_path, text, home))
    assert sources.find_links == (str(tmp_path / "wheels"),)
    assert sources.extra_indexes == ()


def test_certificates_are_given_to_uv_only_where_the_user_set_none(home: dict[str, str]) -> None:
    sources = read_package_sources({**home, "PIP_CERT": "/ca.pem"})
    assert sources.uv_variables({}) == {"SSL_CERT_FILE": "/ca.pem"}
    assert sources.uv_variables({"SSL_CERT_FILE": "/mine.pem"}) == {}


def test_no_index_leaves_only_the_folders(home: dict[str, str]) -> None:
    sources = PackageSources(find_links=("/wheels",), no_index=True, extra_indexes=("https://one.example",))
    assert sources.uv_arguments() == ["--no-index"]
    assert sources.uv_variables(home) == {"UV_FIND_LINKS": "/wheels"}


def test_a_folder_with_a_comma_in_its_name_is_one_folder(tmp_path: Path, home: dict[str, str]) -> None:
    sources = PackageSources(find_links=(str(tmp_path / "a,b"), "/wheels"))
    assert sources.uv_variables(home)["UV_FIND_LINKS"] == f"file://{tmp_path}/a%2Cb,/wheels"


def test_an_unreadable_file_is_left_out(tmp_path: Path, home: dict[str, str]) -> None:
    environ = configured(tmp_path, "index-url = no section above me\n", home)
    assert read_package_sources(environ).index == DEFAULT_INDEX

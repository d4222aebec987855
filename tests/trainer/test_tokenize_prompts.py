"""Conversations become the same text on every side: what differs is of a release, and not of the moment."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

WORKER = Path(__file__).parents[2] / "rlaudit" / "laboratory" / "trainer" / "tokenize_prompts.py"
CHAT = [{"role": "user", "content": "What is 7 * 6?"}]


class Tokenizer:
    """One that has a template, and a method of its own to apply it."""

    today = "30 Nov 2026"

    def __init__(self, chat_template: str) -> None:
        self.chat_template = chat_template

    def __len__(self) -> int:
        return 2

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}

    def apply_chat_template(self, messages: list[dict[str, str]], **arguments: Any) -> str:
        write = arguments.get("strftime_now", lambda _format: self.today)
        written = write("%d %b %Y") if "strftime_now" in self.chat_template else ",".join(sorted(arguments))
        return f"{written}: {messages[0]['content']}"


def rendered(monkeypatch: pytest.MonkeyPatch, template: str) -> dict[str, Any]:
    transformers = ModuleType("transformers")
    tokenizer = Tokenizer(template)
    transformers.AutoTokenizer = SimpleNamespace(from_pretrained=lambda *_, **__: tokenizer)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    spec = importlib.util.spec_from_file_location("tokenize_prompts", WORKER)
    assert spec is not None and spec.loader is not None
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    job = {"model": "any", "prompts": [CHAT], "shapes": {"one": {"messages": CHAT}}}
    result: dict[str, Any] = worker.run(job, SimpleNamespace(phase=lambda _name: None))
    return result


def test_a_template_that_writes_the_date_writes_the_same_one_on_another_day(monkeypatch: pytest.MonkeyPatch) -> None:
    first = rendered(monkeypatch, "{{ strftime_now('%d %b %Y') }}")
    monkeypatch.setattr(Tokenizer, "today", "01 Dec 2026")
    second = rendered(monkeypatch, "{{ strftime_now('%d %b %Y') }}")
    assert first["texts"] == second["texts"]
    assert first["shapes"] == second["shapes"]


def test_a_template_without_a_date_is_given_nothing_about_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendered(monkeypatch, "{{ messages }}")["texts"] == ["add_generation_prompt,tokenize: What is 7 * 6?"]

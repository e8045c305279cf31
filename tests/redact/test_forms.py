"""Every form of a secret, a person or a place goes; what says nothing of anybody stays."""

from __future__ import annotations

import re
import time

import pytest

from cudnn_doctor.redact import tokens
from cudnn_doctor.redact.names import strength
from cudnn_doctor.redact.redactor import Identity, Redactor
from tests.redact import forms


def redacted(text: str) -> str:
    redactor = Redactor(Identity())
    redactor.learn(text)
    return redactor.text(text)


@pytest.mark.parametrize("form", forms.NAMED)
def test_a_value_beside_its_name(form: str) -> None:
    for value in forms.VALUES.values():
        assert value not in redacted(form.replace("{s}", value) + "\n")


@pytest.mark.parametrize("issuer", forms.ISSUED)
def test_a_token_by_its_own_form(issuer: str) -> None:
    prefix, alphabet, length = forms.ISSUED[issuer]
    for around in forms.AROUND:
        rest = forms.draw(alphabet, length)
        assert rest not in redacted(around.replace("{s}", prefix + rest) + "\n")


@pytest.mark.parametrize("what", forms.PEOPLE)
def test_people_and_places(what: str) -> None:
    text, gone = forms.PEOPLE[what]
    shown = redacted(text + "\n")
    assert [g for g in gone if g in shown] == []


@pytest.mark.parametrize("line", forms.KEPT)
def test_what_must_stay(line: str) -> None:
    assert redacted(line) == line


def test_what_must_stay_stays_beside_everything_else() -> None:
    lines = "\n".join(forms.KEPT).splitlines()
    assert redacted("\n".join(lines)).splitlines() == lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\n{k}\n{k}", "<secret>\n"),  # cut at its end
        ("{k}\n{k}\n-----END RSA PRIVATE KEY-----", "<secret>\n"),
        ("x\n{k}\n{k}\n{k}\ny", "x\n<secret>\ny\n"),  # the middle alone
        ('"key": "-----BEGIN PRIVATE KEY-----\\n{k}\\n-----END PRIVATE KEY-----\\n"', None),
        ("-----BEGIN CERTIFICATE-----\nMIIC", "-----BEGIN CERTIFICATE-----\nMIIC\n"),
        ("Private-Lines: 2\n{k}\n{k}\nPrivate-MAC: 0123456789abcdef", None),
    ],
)  # fmt: skip
def test_private_keys_whole_and_cut(text: str, shown: str | None) -> None:
    body = forms.draw(forms.ALNUM, 64)
    after = redacted(text.replace("{k}", body) + "\n")
    assert body not in after
    assert shown is None or after == shown


def test_a_value_is_replaced_wherever_else_it_stands() -> None:
    value = forms.draw(forms.ALNUM, 24)
    assert redacted(f"token={value}\nlater {value} again") == "token=<secret>\nlater <secret> again"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("password", "strong"), ("dbPassword", "strong"), ("DB_PASS", "strong"), ("backward_pass", "none"),
        ("hf_token", "strong"), ("pad_token", "none"), ("token_ids", "none"), ("tokenizer", "none"),
        ("primary_key", "none"), ("key", "weak"), ("num_key_value_heads", "none"), ("clientSecret", "strong"),
        ("cache_key", "none"), ("auth", "weak"), ("api-key", "strong"),
    ],
)  # fmt: skip
def test_how_much_a_name_says(name: str, expected: str) -> None:
    assert strength(name) == expected


UNITS = (
    "a",
    "A1",
    "=",
    "key=",
    "eyJ",
    "eyJa.",
    "\n  key:",
    "pass\n",
    "{k}",
    "'",
    '"',
    "://",
    "a@",
    "-----BEGIN ",
    "Private-Lines: 9\n",
)


@pytest.mark.parametrize("unit", UNITS)
def test_no_text_makes_the_search_run_away(unit: str) -> None:
    """Work grows with the length and not with its square: four times the text, at most nine times the work."""

    def work(length: int) -> float:
        text = unit * (length // len(unit))
        start = time.process_time()
        redacted(text)
        return time.process_time() - start

    work(1000)
    assert work(80_000) < max(9 * work(20_000), 1.0)


def test_the_rules_of_gitleaks_are_python_and_bounded() -> None:
    """No repetition without an upper bound but of one class that ends the expression, or of one character of space."""
    rules = {rule.id: rule for _, found in tokens.rules() for rule in found}
    assert len(rules) > 200
    for rule in rules.values():
        assert rule.pattern.pattern == rule.regex
        bare = re.sub(r"\\.", "E", re.sub(r"\[(?:[^\]\\]|\\.)+\]", "C", rule.regex))
        endless = re.findall(r"[*+]|\{\d+,\}", bare)
        assert endless == [] or rule.id in ("freemius-secret-key", "slack-bot-token"), rule.id

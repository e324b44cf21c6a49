"""Credentials are masked before a record is stored, and the record says so."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard.people import EscalationView, redact_credentials
from langgraph_loopguard.people.redact import has_marks
from tests.people.hostile import record, texts

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAxyz\n-----END RSA PRIVATE KEY-----"

CREDENTIALS = {
    "aws": "AKIA" + "IOSFODNN7EXAMPLQ",
    "github": "ghp_" + "a1B2" * 9,
    "fine-grained": "github_pat_" + "a1B2c3D4e5" * 8,
    "gitlab": "glpat-" + "a1B2c3D4e5F6g7H8i9J0",
    "slack": "xoxb-" + "123456789012-123456789012-a1b2c3d4e5f6",
    "anthropic": "sk-ant-" + "api03-" + "a1B2c3D4" * 6,
    "openai": "sk-proj-" + "a1B2c3D4" * 6,
    "google": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "stripe": "sk_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N",
    "hugging face": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
}


@pytest.mark.parametrize("name", CREDENTIALS)
@pytest.mark.parametrize("around", ["{}", "+token = '{}'\n", "see https://x.example/?t={} there", "a\n-{}\nb"])
def test_a_credential_is_masked_wherever_it_stands(name: str, around: str) -> None:
    """In the diff, a review, a nested value, a key: none is left, and the lines keep their numbers."""
    secret = CREDENTIALS[name]
    text = around.format(secret)
    given_record = record(diff=text, reviews=[{"content": {"deep": [{"er": text}]}}], findings=[{text: 1}])
    before = copy.deepcopy(given_record)
    stored = redact_credentials(given_record)
    assert secret not in json.dumps(stored)
    assert text.count("\n") == stored["diff"].count("\n")
    assert sum(stored["redacted"].values()) >= 3
    assert before == given_record
    assert "masked" in (EscalationView.of(stored).redacted or "")


def test_private_keys_passwords_and_named_secrets_are_masked() -> None:
    """Whole keys, the password of an address, what is assigned to a password, values under telling keys."""
    cut = KEY.rsplit("\n", 1)[0]
    stored = redact_credentials(
        {
            "diff": f'{KEY}\nkept\npassword = "correct horse"\nurl = "https://bob:hunter2@db.example/x"\n{cut}\nkept too',
            "evidence": [{"API-Key": "short", "client_secret": "x", "tokens": 12, "secretary": "bob"}],
        }
    )
    assert "MIIEow" not in stored["diff"]
    assert "correct horse" not in stored["diff"]
    assert "hunter2" not in stored["diff"]
    assert "https://bob:" in stored["diff"]
    assert "@db.example/x" in stored["diff"]
    assert "\nkept\n" in stored["diff"]
    assert stored["diff"].endswith("\nkept too")
    assert {"API-Key": "[redacted: secret]", "client_secret": "[redacted: secret]"} == {
        key: value for key, value in stored["evidence"][0].items() if key not in ("tokens", "secretary")
    }
    assert (12, "bob") == (stored["evidence"][0]["tokens"], stored["evidence"][0]["secretary"])


def test_what_is_no_credential_stays() -> None:
    """Code that speaks of secrets, hashes, commits, ids and addresses are what people must read."""
    code = (
        "def check_password(password: str) -> bool:\n    return hmac.compare_digest(password, self.secret)\n"
        "commit 3f786850e387550fdab836ed7e6dc881de23001b\n10.0.0.1 APIKeyManager api_key: str | None = None\n"
    )
    given_record = record(diff=code)
    stored = redact_credentials(given_record)
    assert {} == stored.pop("redacted")
    assert given_record == stored


@given(texts, st.sampled_from(sorted(CREDENTIALS)))
def test_masking_keeps_the_shape(text: str, name: str) -> None:
    """Whatever surrounds it: the same keys, and a second pass finds nothing more."""
    stored = redact_credentials(record(f"{text}\n{CREDENTIALS[name]}\n{text}"))
    assert CREDENTIALS[name] not in stored["diff"]
    assert {*record()} | {"redacted"} == {*stored}
    again = redact_credentials(stored)
    assert stored["diff"] == again["diff"]


def test_a_mask_is_known_again() -> None:
    """So that a masked text is not taken for the work itself."""
    stored: dict[str, Any] = redact_credentials({"diff": CREDENTIALS["aws"]})
    assert has_marks([{"a": stored["diff"]}])
    assert not has_marks({"a": ["[redacted]", 3, None]})

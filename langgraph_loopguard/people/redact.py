"""Masks credentials in a record before it is stored where more people can read it than can read the graph.

The shapes of vendors' tokens come from `detect-secrets`; a few newer ones, whole private keys and values under keys
that name a secret are added here. A mask says what it hides, and the record says how many there are: a person who
decides about a text must know that it is not the one the graph holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

Record = dict[str, Any]
Redact = Callable[[Record], Record]
"""Takes a record, returns the one to store. The given one is not changed."""

REDACTED = "redacted"
"""Key of the record under which the counts stand, by kind."""

MARK = re.compile(r"\[redacted: [^\]\n]{1,60}\]")
"""What stands in the place of a credential."""

LEFT_OUT = frozenset({"ArtifactoryDetector", "CloudantDetector", "IbmCloudIamDetector", "IbmCosHmacDetector"}) | {
    "IPPublicDetector",
    "PrivateKeyDetector",
    "SoftlayerDetector",
}
"""Regular expressions of `detect-secrets` that mask ordinary words and addresses, take seconds per megabyte, or see
only the head of what is masked here as a whole."""

BASIC_AUTH = "Basic Auth Credentials"

REACH = 300
"""Characters around the name of a secret (`password`) in which its value is looked for."""

KEPT_WHOLE = frozenset({"id", "thread_id", "loop", "nodes", "edge", "outcome", "options", "created_at"})
"""Keys of a record that the queue needs to find its way back."""

PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:.{0,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|(?:\s[+\- ]?[A-Za-z0-9+/=]{16,})*)",
    re.DOTALL,
)
"""From the first line to the last; where that is cut off, as far as there is base64."""

OWN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private key", PRIVATE_KEY),
    ("Anthropic API key", re.compile(r"\bsk-ant-[\w-]{20,}")),
    ("OpenAI API key", re.compile(r"\bsk-(?:proj|svcacct|admin)-[\w-]{20,}")),
    ("LangSmith API key", re.compile(r"\blsv2_(?:pt|sk)_[0-9a-zA-Z_]{32,}")),
    ("Google API key", re.compile(r"\bAIza[\w-]{35}")),
    ("Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("GitHub token", re.compile(r"\bgithub_pat_\w{36,}")),
    ("bearer token", re.compile(r"(?<=\bBearer )[\w.~+/-]{20,}=*", re.IGNORECASE)),
)
"""Kind and shape of credentials that `detect-secrets` 1.5 does not know, or not as a whole."""

SECRET_NAME = re.compile(
    r"(?:^|[_\-. ])(?:password|passwd|passphrase|secret|authorization|(?:api|access|private|secret)[_-]?key"
    r"|(?:auth|access|refresh|bearer)[_-]?token)$",
    re.IGNORECASE,
)
"""Names of keys whose value is a secret, whatever it looks like."""


def redact_credentials(record: Mapping[str, Any]) -> Record:
    """Return the record with every credential that is recognised masked, and counted under `redacted`.

    Args:
        record: An escalation's record.

    Returns:
        A new record: each credential stands as `[redacted: KIND]`, and `record["redacted"]` is `{KIND: count}`; empty
        when there was none. What nobody recognises stays: give your own `redact=` for secrets of your own shape.

    Raises:
        ImportError: `detect-secrets` is not installed (extra `queue`).
    """
    counts: Counter[str] = Counter()
    out = {key: value if key in KEPT_WHOLE else _walk(value, key, counts) for key, value in record.items()}
    out[REDACTED] = dict(counts)
    return out


def has_marks(value: Any) -> bool:
    """Whether a mask stands in a value, at any depth."""
    match value:
        case str():
            return MARK.search(value) is not None
        case Mapping():
            return any(has_marks(item) for item in value.values())
        case list() | tuple():
            return any(has_marks(item) for item in value)
    return False


def _walk(value: Any, name: str, counts: Counter[str]) -> Any:
    match value:
        case str():
            if value and SECRET_NAME.search(name):
                return _mask("secret", counts)
            return _text(value, counts)
        case Mapping():
            return {_text(str(key), counts): _walk(item, str(key), counts) for key, item in value.items()}
        case list() | tuple():
            return [_walk(item, name, counts) for item in value]
    return value


def _text(text: str, counts: Counter[str]) -> str:
    if len(text) < 8:
        return text
    shapes, name, values = _detectors()
    for kind, shape in shapes:
        text = shape.sub(lambda found, kind=kind: _mask(kind, counts, found), text)  # type: ignore[misc]
    secrets: set[str] = set()
    for found in name.finditer(text):
        start, end = max(0, found.start() - REACH), found.end() + REACH
        start = max(start, text.rfind("\n", start, found.start()) + 1)
        end = stop if (stop := text.find("\n", found.end(), end)) >= 0 else end
        secrets |= {value for value in values(text[start:end]) if value and not MARK.search(value)}
    for secret in sorted(secrets, key=len, reverse=True):  # a short one may be a part of a long one
        quoted = re.compile(rf"(?<=[\"'`]){re.escape(secret)}(?=[\"'`])")
        text = quoted.sub(lambda found: _mask("secret", counts), text)
    return text


def _mask(kind: str, counts: Counter[str], found: re.Match[str] | None = None) -> str:
    counts[kind] += 1
    mark = f"[redacted: {kind}]"
    if found is None:
        return mark
    whole = found.group()
    if kind == BASIC_AUTH:  # the group is the password, and the address is worth reading
        whole = whole[: found.start(1) - found.start()] + mark + whole[found.end(1) - found.start() :]
        return whole
    return mark + "\n" * whole.count("\n")  # lines keep their numbers


@lru_cache(maxsize=1)
def _detectors() -> tuple[tuple[tuple[str, re.Pattern[str]], ...], re.Pattern[str], Callable[[str], Iterable[str]]]:
    """Return the shapes by kind, the names of secrets, and what finds a secret's value beside its name."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
        from detect_secrets.plugins.base import RegexBasedDetector
        from detect_secrets.plugins.keyword import DENYLIST, KeywordDetector
    except ImportError as error:
        msg = "masking credentials needs detect-secrets: pip install 'langgraph-loopguard[queue]', or give redact=None"
        raise ImportError(msg) from error
    kinds: Iterable[tuple[str, Any]] = get_mapping_from_secret_type_to_class().items()
    shapes = [
        (kind, shape)
        for kind, plugin in kinds
        if issubclass(plugin, RegexBasedDetector) and plugin.__name__ not in LEFT_OUT
        for shape in plugin().denylist
    ]
    return (*OWN, *shapes), re.compile("|".join(DENYLIST), re.IGNORECASE), KeywordDetector().analyze_string

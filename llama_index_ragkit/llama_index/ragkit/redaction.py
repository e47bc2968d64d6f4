"""Texts without API keys, passwords and tokens: errors, which are logged and stored, and what `repr` shows."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

__all__ = ["redact"]

_MASK = "***"
_LONGEST_MESSAGE = 20_000  # characters; a failing proxy may reply with a whole page
_SHORTEST_SECRET = 6  # placeholders for servers that ignore the key, such as "none" and "fake", are shorter
_SECRET_FIELDS = re.compile("key|token$|secret|password|headers|authorization|credential|cookie|dsn", re.IGNORECASE)

_NAMES = (
    "api[_-]?key|apikey|access[_-]?key|account[_-]?key|private[_-]?key|secret|token|passw(?:or)?d|pwd|passphrase|"
    "signature|credential|x-goog-signature|subscription-key"
)
_DATABASE = r"(?<![\w+.-])(?!https?:)[a-z][\w+.-]*:/+"  # how its URL begins
# A database takes passwords, key files and whole commands in the query of its URL, so no value is shown.
_DATABASE_BEGIN = re.compile(_DATABASE, re.IGNORECASE)
_TOKEN = re.compile(r"[^\s\"'<>]+")
_VALUE = re.compile(r"=[^&]*")
_PATTERNS = [
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL), _MASK),
    # scheme://user:password@host; the password of a database may have any sign
    (re.compile(r"(://)[^\s/?#\"'<>]*@"), rf"\1{_MASK}@"),
    (
        re.compile(rf"({_DATABASE})(?:[^\s/?#:\"'<>]*:[^\n\"'<>]{{0,200}}|[^\s\"'<>]*)@", re.IGNORECASE),
        rf"\1{_MASK}@",
    ),
    # Authorization: <anything>; the scheme is kept
    (
        re.compile(
            r"((?:proxy-)?authorization|(?:set-)?cookie)([\"']?\s*[:=]\s*[\"']?)(?:(\w{1,20}) +)?[^\"'\r\n}]+",
            re.IGNORECASE,
        ),
        rf"\1\2{_MASK}",
    ),
    (re.compile(r"\b(Bearer|Token|ApiKey)\s+(?=[\w.~+/=-]*[\d._=-])[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {_MASK}"),
    (re.compile(r"\b(Bearer)\s+[^\s\"',;]+"), rf"\1 {_MASK}"),
    (re.compile(r"\b(Basic)\s+(?=[\w+/-]*[A-Z\d=])[\w+/-]{6,}={0,2}"), rf"\1 {_MASK}"),
    # name=value, "name": "value", ?name=value
    (
        re.compile(
            rf"((?:{_NAMES})(?![a-rt-z])[\w-]{{0,40}}[\"']?\s{{0,3}}(?:=|:|%3D)\s{{0,3}}[\"']?)"
            r"(?!\d{1,6}(?![\w-]))(?:(?<=\")[^\"]+|(?<=')[^']+|[^\s\"'&,;)}\]]+)",
            re.IGNORECASE,
        ),
        rf"\1{_MASK}",
    ),
    (re.compile(r"([?&](?:key|sig|auth|code|access|pass)=)[^\s\"'&#]+", re.IGNORECASE), rf"\1{_MASK}"),
    # keys that are known by their own form
    (re.compile(r"\b(?:sk|pk|rk|gsk|hf|xai|r8|nvapi|pplx|tgp|voyage|pa|glpat|npm|pypi|dop_v1)[-_][\w*-]{8,}"), _MASK),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{12,}"), _MASK),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_)\w{16,}"), _MASK),
    (re.compile(r"\bAIza[\w-]{20,}|\bya29\.[\w.-]{10,}|\bxox[abeoprs]-[\w-]{8,}"), _MASK),
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)*"), _MASK),
]


def redact(message: str, *owners: object) -> str:
    """A message, or a URL, without secrets.

    Parameters
    ----------
    message : the text of an error; what exceeds 20,000 characters is cut off
    owners : models and stores; the values of their fields whose names are those of keys, headers or passwords are
        replaced wherever they occur, also in percent-encoding. Beyond that, whatever looks like a secret is: URLs with
        a user, secrets in their query and every value in that of a database, headers, `name=value`, and the forms of
        common keys
    """
    message = message[: 2 * _LONGEST_MESSAGE]  # more than is shown, so that no secret is cut before it is found
    secrets = {secret for owner in owners for secret in _secrets(owner)}
    for secret in sorted(secrets | {quote(secret, safe="") for secret in secrets}, key=lambda s: (-len(s), s)):
        message = message.replace(secret, _MASK)
    for pattern, mask in _PATTERNS:
        message = pattern.sub(mask, message)
    return _TOKEN.sub(_without_values, message)[:_LONGEST_MESSAGE]


def _without_values(token: re.Match[str]) -> str:
    """A word of a message, without the values of a query if it is the URL of a database."""
    found = _DATABASE_BEGIN.search(token[0])
    if found is None:
        return token[0]
    place, mark, query = token[0][found.end() :].partition("?")
    return token[0][: found.end()] + place + mark + _VALUE.sub(f"={_MASK}", query)


def _secrets(owner: object) -> Iterator[str]:
    private = getattr(owner, "__pydantic_private__", None) or {}
    for name, value in {**getattr(owner, "__dict__", {}), **private}.items():
        if _SECRET_FIELDS.search(name):
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
        return
    text = value.get_secret_value() if hasattr(value, "get_secret_value") else value
    if isinstance(text, str) and len(text) >= _SHORTEST_SECRET:
        yield text

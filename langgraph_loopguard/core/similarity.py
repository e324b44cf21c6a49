"""How alike two texts are, whatever their wording: by their words, or by any LangChain embedding model.

A reviewer never repeats itself to the letter, so a hash cannot see that it says the same again. What a message says it
says first: word pairs of the first few lines tell a restated complaint from another one better than those of the
whole text, whose examples and code are alike from one remark to the next (the curve is in `docs/detection.md`).
"""

from __future__ import annotations

import re
import string
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import mul
from typing import Any, Protocol

from langchain_core.embeddings import Embeddings
from xxhash import xxh3_64_hexdigest

HEAD = 400
"""Characters of a text that are compared, and that bound what is remembered of it."""

LARGEST_VECTOR = 4096
"""Dimensions that a vector may have, for it stands in the ledger."""

_BLANKS = str.maketrans(
    dict.fromkeys([*map(ord, string.punctuation), 0xA1, 0xAB, 0xB7, 0xBB, 0xBF, *range(0x2000, 0x2070)], " ")
)
"""Punctuation, as far as it may stand at a word, becomes a blank."""

_TOKEN = re.compile(r"[\w./]+")
_EDGE = "./_"
_MARKS = string.punctuation + "\u2018\u2019\u201c\u201d\u2026"
_BREAK = " : "
_ENDS = frozenset(".!?:>")
_COMMON = frozenset(
    """
    a about after all also am an and any are as at be because been before being both but by can could did do does doing
    for from had has have having he her here hers him his how i if in into is it its itself just me might more most must
    my no nor not now of off on once only or other our out over own please same shall she should so some such than that
    the their them then there these they this those through to too under until up us very was we were what when where
    which while who whom why will with would you your
    """.split()  # noqa: SIM905 - a list of so many words is no easier to read
)
"""Words that say little in any English text; other languages have none left out."""


class Similarity(Protocol):
    """Compares texts by notes of them that are plain JSON."""

    @property
    def name(self) -> str:
        """Name under which the notes stand in a ledger."""
        ...

    @property
    def threshold(self) -> float:
        """From where on two texts say the same, unless a condition says otherwise."""
        ...

    def note(self, text: str, words: list[str], earlier: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Return what is remembered of a text: bounded, plain JSON.

        Args:
            text: The text, not empty.
            words: The words at its head, common ones left out.
            earlier: Notes that are remembered already.
        """
        ...

    def alike(self, note: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[float]:
        """Return how alike a noted text is to each of others, from 0 to 1."""
        ...


class WordPairs:
    """Jaccard index of the word pairs in the first 400 characters, common words aside. The default; costs microseconds.

    It is made for languages that put blanks between words; for others, and for paraphrase, plug in `Embeddings`.
    """

    name = "words"
    threshold = 0.25

    def __repr__(self) -> str:
        return "WordPairs()"

    def __eq__(self, other: object) -> bool:
        return type(other) is WordPairs

    def __hash__(self) -> int:
        return hash(WordPairs)

    def note(self, text: str, words: list[str], earlier: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """See `Similarity.note`."""
        return {"words": words}

    def alike(self, note: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[float]:
        """See `Similarity.alike`."""
        pairs = _pairs(note["words"])
        return [jaccard(pairs, _pairs(other["words"])) for other in others]


class EmbeddedText:
    """Cosine of the vectors that a LangChain embedding model gives for the first 400 characters.

    Vectors stand in the ledger, one byte a dimension, for as long as the window does: a text that is remembered is not
    embedded again. The model is called in the step of the node that wrote, synchronously; when it fails, the guard is
    broken and the loop goes to a person.

    Args:
        embeddings: Any LangChain `Embeddings`.
        threshold: From where on two texts say the same; it depends on the model, so measure it on pairs of your own.
        name: Name of the model in the ledger. A thread that holds vectors of another name does not compare them.
    """

    def __init__(self, embeddings: Embeddings, threshold: float = 0.8, name: str | None = None) -> None:
        if not isinstance(embeddings, Embeddings):
            msg = f"embeddings must be a LangChain Embeddings, got {embeddings!r}"
            raise TypeError(msg)
        model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
        self.embeddings = embeddings
        self.threshold = threshold
        self.name = name or f"vector:{type(embeddings).__name__}{f':{model}' if isinstance(model, str) else ''}"

    def __repr__(self) -> str:
        return f"EmbeddedText({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmbeddedText) and self.name == other.name and self.embeddings is other.embeddings

    def __hash__(self) -> int:
        return hash(self.name)

    def note(self, text: str, words: list[str], earlier: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """See `Similarity.note`."""
        text = text[:HEAD]
        fingerprint = xxh3_64_hexdigest(text.encode("utf-8", "replace"))
        for note in earlier:
            if note.get("text") == fingerprint:
                return {"text": fingerprint, "vector": note["vector"]}
        return {"text": fingerprint, "vector": _packed(self.embeddings.embed_documents([text])[0])}

    def alike(self, note: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[float]:
        """See `Similarity.alike`."""
        vector = _unpacked(note["vector"])
        return [
            1.0 if other["text"] == note["text"] else _cosine(vector, _unpacked(other["vector"])) for other in others
        ]


def as_similarity(thing: Any) -> Similarity:
    """Return the measure that a setting stands for: itself, a LangChain `Embeddings`, or `None` for the words.

    Raises:
        TypeError: It is none of these.
    """
    if thing is None:
        return WordPairs()
    if isinstance(thing, Embeddings):
        return EmbeddedText(thing)
    if all(hasattr(thing, part) for part in ("name", "threshold", "note", "alike")) and not isinstance(thing, type):
        found: Similarity = thing
        return found
    msg = f"similarity must be a LangChain Embeddings or a Similarity, got {thing!r}"
    raise TypeError(msg)


def words_and_names(text: str) -> tuple[list[str], list[str]]:
    """Return the words at the head of a text, common ones left out, and what it names there (each name once).

    A name is told by its form, in any language that has capitals: a digit, a dot or slash inside, a capital inside, or
    a capital that begins no sentence. The number of a list's item is none.
    """
    head = text[:HEAD]
    all_words = head.lower().translate(_BLANKS).split()
    words = [word for word in all_words if word not in _COMMON]
    tokens, plain = head.replace("\n", _BREAK).split(), set(all_words)
    names: dict[str, None] = {}
    for at in [at for at, token in enumerate(tokens) if token not in plain or not token.isalpha()]:  # a few of many
        token, before = tokens[at], tokens[at - 1] if at else ":"
        if before == ":" and token[-1] in ".)" and token[:-1].isdigit():
            tokens[at] = ":"  # what follows begins a sentence
            continue
        begins = before[-1] in _ENDS
        word = token.strip(_MARKS)
        if word.isalpha():
            if not word.islower() and (not begins or word[1:] != word[1:].lower()):
                names[word.lower()] = None
            continue
        for found in _TOKEN.findall(word):
            word = found.strip(_EDGE)
            if word and _is_name(word, begins):
                names[word.lower()] = None
    return words, [name for name in names if name not in _COMMON]


def _is_name(word: str, begins: bool) -> bool:
    if word.isalpha():
        return not word.islower() and (not begins or word[1:] != word[1:].lower())
    return "." in word or "/" in word or word != word.lower() or any(map(str.isdigit, word))


def jaccard(one: set[Any], other: set[Any]) -> float:
    """Return the share of what two sets have in common; two empty ones have all in common."""
    shared = len(one & other)
    union = len(one) + len(other) - shared
    return shared / union if union else 1.0


def _pairs(words: list[str]) -> set[Any]:
    return set(pairwise(words)) or set(words)


def _cosine(one: array[int], other: array[int]) -> float:
    norm = (sum(map(mul, one, one)) * sum(map(mul, other, other))) ** 0.5
    return max(0.0, sum(map(mul, one, other)) / norm) if norm and len(one) == len(other) else 0.0


def _packed(vector: Sequence[float]) -> str:
    if not 0 < len(vector) <= LARGEST_VECTOR:
        msg = f"embeddings must give vectors of 1 to {LARGEST_VECTOR} dimensions, got {len(vector)}"
        raise ValueError(msg)
    scale = 127 / (max(map(abs, vector)) or 1)
    return b64encode(array("b", [round(part * scale) for part in vector]).tobytes()).decode()


def _unpacked(vector: str) -> array[int]:
    return array("b", b64decode(vector))

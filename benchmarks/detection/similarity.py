"""How well candidates tell a restated complaint from another one: the curve that the default was chosen by."""

from __future__ import annotations

import json
import random
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.detection.traces import lines
from langgraph_loopguard.core.similarity import EmbeddedText, WordPairs, jaccard, words_and_names

Pairs = list[tuple[str, str, bool]]
Measure = Callable[[str, str], float]

WORD = re.compile(r"[a-z0-9]+")


class Row(NamedTuple):
    """One candidate on one set of pairs."""

    name: str
    auc: float
    recalls: list[float]
    """Share of restated complaints found at 0, 2 and 5 % false ones."""
    microseconds: float
    """Per pair, both texts read anew."""


def read_pairs(folder: Path) -> Pairs:
    """The labelled pairs of a folder; ambiguous ones are left out."""
    return [
        (row["a"], row["b"], row["relation"] == "same")
        for path in sorted((folder / "traces").glob("chatdev_comment_pairs.*jsonl"))
        for row in lines(path)
        if row["relation"] != "ambiguous"
    ]


def words(text: str) -> list[str]:
    """All words of a text."""
    return WORD.findall(text.lower())


def shingles(text: str, size: int) -> set[Any]:
    """Runs of words."""
    found = words(text)
    return set(zip(*[found[at:] for at in range(size)], strict=False)) or set(found)


def first_sentence(text: str) -> str:
    """The first sentence of six words or more, with what stands before it."""
    taken: list[str] = []
    for part in re.split(r"(?<=[.!?:])\s|\n", text):
        taken.append(part)
        if len(words(" ".join(taken))) >= 6:
            break
    return " ".join(taken)


def default(one: str, other: str) -> float:
    """What `RestatedPayload` uses."""
    measure = WordPairs()
    first, second = (measure.note(text, words_and_names(text)[0]) for text in (one, other))
    return measure.alike(first, [second])[0]


def candidates(pairs: Pairs) -> tuple[dict[str, Measure], list[str]]:
    """All measures that can be had here, and what is missing."""
    found: dict[str, Measure] = {
        "words, Jaccard": lambda a, b: jaccard(set(words(a)), set(words(b))),
        "3-word shingles, Jaccard": lambda a, b: jaccard(shingles(a, 3), shingles(b, 3)),
        "first sentence, words": lambda a, b: jaccard(set(words(first_sentence(a))), set(words(first_sentence(b)))),
        "informative words of the first 400 characters": lambda a, b: jaccard(
            set(words_and_names(a)[0]), set(words_and_names(b)[0])
        ),
        "**pairs of those (the default)**": default,
        "pairs of all words": lambda a, b: jaccard(set(pairwise(words(a))), set(pairwise(words(b)))),
    }
    missing = []
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
        vectors.fit([text for pair in pairs for text in pair[:2]])

        def tfidf(a: str, b: str) -> float:
            both = vectors.transform([a, b])
            return float((both[0] @ both[1].T).toarray()[0, 0])

        found["character 3- to 5-grams, TF-IDF"] = tfidf
    except ImportError:
        missing.append("scikit-learn")
    try:
        from rapidfuzz import fuzz

        found["rapidfuzz `token_set_ratio`"] = lambda a, b: fuzz.token_set_ratio(a, b) / 100
        found["rapidfuzz `ratio`"] = lambda a, b: fuzz.ratio(a, b) / 100
    except ImportError:
        missing.append("rapidfuzz")
    embedded = static_embeddings()
    if embedded is None:
        missing.append("wordllama (a static embedding model that ships its weights)")
    else:
        measure = EmbeddedText(embedded)

        def vector(a: str, b: str) -> float:
            first, second = measure.note(a, []), measure.note(b, [])
            return measure.alike(first, [second])[0]

        found["WordLlama 256, static vectors, as `Embeddings`"] = vector
    return found, missing


def static_embeddings() -> Any:
    """WordLlama's vectors as LangChain `Embeddings`; `None` where the package is not installed."""
    try:
        import wordllama
        from langchain_core.embeddings import Embeddings
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError:
        return None
    folder = Path(wordllama.__file__).parent
    table = next(iter(load_file(folder / "weights" / "l2_supercat_256.safetensors").values()))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))

    class Static(Embeddings):
        model = "wordllama-256"

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [
                [float(part) for part in table[tokenizer.encode(text, add_special_tokens=False).ids].mean(axis=0)]
                for text in texts
            ]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return Static()


def auc(scores: list[tuple[float, bool]]) -> float:
    """Chance that a restated pair scores above another one; a tie is half of one."""
    negative = sorted(score for score, same in scores if not same)
    positive = [score for score, same in scores if same]
    wins = sum((bisect_left(negative, score) + bisect_right(negative, score)) / 2 for score in positive)
    return wins / (len(positive) * len(negative))


def recall(scores: list[tuple[float, bool]], false_rate: float) -> float:
    """Share of restated pairs above the threshold that lets through no more than that share of other ones."""
    negative = sorted((score for score, same in scores if not same), reverse=True)
    threshold = negative[int(false_rate * len(negative))]
    positive = [score for score, same in scores if same]
    return sum(score > threshold for score in positive) / len(positive)


def curve(pairs: Pairs) -> tuple[list[Row], list[str]]:
    """Measure all candidates."""
    found, missing = candidates(pairs)
    rows = []
    for name, measure in found.items():
        began = time.process_time()
        scores = [(measure(one, other), same) for one, other, same in pairs]
        spent = time.process_time() - began
        recalls = [recall(scores, rate) for rate in (0, 0.02, 0.05)]
        rows.append(Row(name, auc(scores), recalls, spent / len(pairs) * 1e6))
    return rows, missing


def interval(pairs: Pairs, folder: Path, measure: Measure, draws: int = 400) -> tuple[float, float]:
    """95 % interval of the AUC, by drawing whole runs: pairs of one run are not independent."""
    groups: dict[str, list[tuple[float, bool]]] = {}
    rows = [
        row
        for path in sorted((folder / "traces").glob("chatdev_comment_pairs.*jsonl"))
        for row in lines(path)
        if row["relation"] != "ambiguous"
    ]
    for row, (one, other, same) in zip(rows, pairs, strict=True):
        groups.setdefault(json.dumps(row.get("group")), []).append((measure(one, other), same))
    draw, names = random.Random(1), list(groups)
    values = []
    for _ in range(draws):
        chosen = [score for name in draw.choices(names, k=len(names)) for score in groups[name]]
        if len({same for _, same in chosen}) == 2:
            values.append(auc(chosen))
    values.sort()
    return values[int(0.025 * len(values))], values[int(0.975 * len(values)) - 1]

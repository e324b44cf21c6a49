"""What counts for a fingerprint, and what does not."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
import unicodedata
from collections import OrderedDict, UserDict, UserString, deque, namedtuple
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, localcontext
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel, SecretStr
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard import Fingerprinter, FingerprintError
from langgraph_loopguard.core import canonical
from langgraph_loopguard.core.scrub import fold_text
from tests.core.payloads import ANYTHING, BROKEN_TEXTS, JSON, TEXTS, shuffled, tupled

fingerprint = Fingerprinter().fingerprint
exact = Fingerprinter(scrub=False).fingerprint


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Word(str):
    pass


class Count(int):
    pass


class Ratio(float):
    pass


@dataclasses.dataclass
class Finding:
    file: str
    line: int


class Remark(BaseModel):
    file: str
    line: int


Pair = namedtuple("Pair", "file line")


def test_fingerprint_is_32_hex_digits() -> None:
    """A fingerprint is a 128-bit hash in hex, so that it fits into every saver."""
    found = fingerprint({"a": 1})
    assert (32, True) == (len(found), set(found) <= set("0123456789abcdef"))


@pytest.mark.parametrize(
    ("payload", "canonical"),
    [(None, b"null"), ("a", b'"a"'), ({"b": [1.0, True], "a": "x\r\n"}, b'{"a":"x","b":[1,true]}')],
)
def test_fingerprint_is_the_xxh3_of_canonical_json(payload: Any, canonical: bytes) -> None:
    """Another program can find the same fingerprint: sorted keys, no blanks, UTF-8."""
    assert xxh3_128_hexdigest(canonical) == fingerprint(payload)
    assert canonical == Fingerprinter().canonical(payload)


@given(JSON, st.randoms(use_true_random=False))
def test_key_order_does_not_count(payload: Any, order: random.Random) -> None:
    """Dicts count by content, at every depth."""
    assert fingerprint(payload) == fingerprint(shuffled(payload, order))


@given(ANYTHING, st.randoms(use_true_random=False))
def test_key_order_does_not_count_for_keys_of_any_kind(payload: Any, order: random.Random) -> None:
    """Keys that are no strings, and keys that fold to one another, count in no order either."""
    assert exact(payload) == exact(shuffled(payload, order))


def test_keys_that_fold_to_one_hide_nothing() -> None:
    """Two keys that differ by a trailing blank keep both their values, whichever comes first."""
    assert fingerprint({"a ": 1, "a": 2}) == fingerprint({"a": 2, "a ": 1})
    assert 3 == len({fingerprint({"a ": 1, "a": 2}), fingerprint({"a ": 3, "a": 2}), fingerprint({"a": 2})})


@given(JSON)
def test_tuples_are_lists(payload: Any) -> None:
    """Savers turn tuples into lists, so the two are one."""
    assert fingerprint(payload) == fingerprint(tupled(payload))


@given(st.integers(-(2**53), 2**53))
def test_a_whole_float_is_its_integer(number: int) -> None:
    """JSON knows one kind of number."""
    assert fingerprint([number]) == fingerprint([float(number)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (10**16, 1e16),
        (0, -0.0),
        (0.0, -0.0),
        (2**63 - 1024, float(2**63 - 1024)),
        (2**80, float(2**80)),
        (-(2**63), -9223372036854775808.0),
        (int(1e300), 1e300),
        (float("nan"), -float("nan")),
        (3, Decimal("3.00")),
        (1.5, Decimal("1.50")),
        (0, Decimal("0E+999999999999")),
        (Decimal("1E+30"), 10**30),
        (2, Fraction(4, 2)),
        (1, Level.LOW),
        ("red", Colour.RED),
        ("red", Word("red")),
        (2, Count(2)),
        (0.5, Ratio(0.5)),
        ("red", UserString("red").data),
        (b"ab", bytearray(b"ab")),
        (b"ab", memoryview(b"ab")),
        ([1, 2], deque([1, 2])),
        ([0, 1, 2], range(3)),
        ({1, 2}, frozenset((2, 1))),
        ({1, 2}, {1: "x", 2: "y"}.keys()),
        ({"a": 1}, OrderedDict(a=1)),
        ({"a": 1}, UserDict(a=1)),
        ({"a": 1}, MappingProxyType({"a": 1})),
        ({"a": 1}, {Word("a"): 1}),
        ({"red": 1}, {Colour.RED.value: 1}),
        ("src/a.py", PurePosixPath("src/a.py")),
        ("2026-01-02", date(2026, 1, 2)),
        ("12:30:00", time(12, 30)),
        (90.0, timedelta(seconds=90)),
        ({"file": "a.py", "line": 1}, Finding("a.py", 1)),
        ({"file": "a.py", "line": 1}, Remark(file="a.py", line=1)),
        (["a.py", 1], Pair("a.py", 1)),
        (SecretStr("pass"), SecretStr("pass")),
        ({"type": "ValueError", "message": "no"}, ValueError("no")),
    ],
)
def test_one_value_in_two_kinds(one: Any, other: Any) -> None:
    """What a reader would call the same value has one fingerprint, alone and inside a dict."""
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint({"k": [one]}) == fingerprint({"k": [other]})


DIFFERENT: list[Any] = [
    None, False, True, 0, 1, -1, 2, 1.5, 2**63, 2**63 + 1, -(2**63) - 1, 2**200, 2**200 + 1, 1e301,
    math.nan, math.inf, -math.inf, "", "0", "1", "None", "null", "nan", "true", "inf", "[]", "{}",
    b"", b"1", b"a", "a", "61", "A", " a", "a b", "a\nb", "a\n\nb", [], {}, [[]], [{}], {"": {}}, [None], [1], ["1"],
    [1, 2], [2, 1], {1, 2}, {"1", "2"}, set(), {1}, {(1, 2)}, {"a": 1}, {"a": "1"}, {"a": None}, {"b": 1},
    {"a": 1, "b": 1},
    {1: 1}, {"1": 1}, {True: 1}, {None: 1}, {"None": 1}, {(1, 2): 1}, {b"1": 1}, {1: "x", "1": "y"}, {1: "y", "1": "x"},
    Decimal("0.1234567890123456789012345678901"), Decimal("0.1234567890123456789012345678902"),
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1E+999999999"), Decimal("1E-999999999"),
    Fraction(1, 3), date(2026, 1, 1), date(2026, 1, 2), time(1), timedelta(seconds=7),
    SecretStr("a"), SecretStr("b"), SecretStr("\ud800"), ValueError("x"), TypeError("x"), ValueError("y"),
    {"\x00bytes": "61"}, {"\x00set": []}, {"\x00\x00set": []}, {"\x00keys": [["1", 1]]}, {"\x00float": "nan"},
    {"\x00int": hex(2**63)}, {"\x00decimal": "NaN"},
]  # fmt: skip


def test_different_values_differ() -> None:
    """Bool is not int, 1 is not "1", {1: x} is not {"1": x}, a set is no list, and no key can pass for a tag."""
    seen: dict[str, Any] = {}
    for value in DIFFERENT:
        found = fingerprint(value)
        assert found not in seen, (seen[found], value)
        seen[found] = value
    assert len(DIFFERENT) == len({fingerprint([value]) for value in DIFFERENT})


@given(
    st.lists(
        st.one_of(st.integers(), TEXTS, st.tuples(st.integers(), TEXTS)), unique_by=lambda item: (type(item), item)
    )
)
def test_sets_count_in_any_order(items: list[Any]) -> None:
    """A set has no order, whatever its members are."""
    assert fingerprint(set(items)) == fingerprint(frozenset(reversed(items)))


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(1, 60))
def test_decimals_count_to_the_last_digit(number: Decimal, precision: int) -> None:
    """The precision that a program has set for its own sums has no say."""
    with localcontext() as context:
        context.prec = precision
        found = fingerprint(number)
    assert fingerprint(number) == found


@given(JSON, JSON)
def test_equal_fingerprints_mean_equal_content(one: Any, other: Any) -> None:
    """With texts that need no folding, two payloads are alike only when they are equal."""
    plain = Fingerprinter(scrub=False)
    same = plain.canonical(one) == plain.canonical(other)
    assert same == (plain.fingerprint(one) == plain.fingerprint(other))
    if one == other and repr(one) == repr(other):
        assert same


# -- what a checkpoint does to a payload ------------------------------------------------------------------------------


def restored(payload: Any) -> Any:
    """The payload as a saver gives it back."""
    serializer = JsonPlusSerializer()
    return serializer.loads_typed(serializer.dumps_typed(payload))


@given(ANYTHING)
def test_fingerprint_survives_a_checkpoint(payload: Any) -> None:
    """A payload counts alike before and after a saver has held it."""
    try:
        after = restored(payload)
    except (TypeError, ValueError, OverflowError):
        return  # what no saver takes, as integers over 64 bits
    assert exact(payload) == exact(after)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00", "x\ud800\u0301", {"k": ["\udc00"]}])
def test_lone_surrogates_count_as_the_question_marks_that_savers_write(text: Any) -> None:
    """Savers replace what UTF-8 cannot hold, so the fingerprint does as well."""
    after = restored(text)
    assert text != after
    assert fingerprint(text) == fingerprint(after)


@given(BROKEN_TEXTS)
def test_no_text_is_too_broken(text: str) -> None:
    """Every str has a fingerprint, and the saved form of it has the same."""
    assert fingerprint(text) == fingerprint(text.encode("utf-8", "replace").decode())


# -- text --------------------------------------------------------------------------------------------------------------


LINES = TEXTS.filter(lambda text: not set(text) & {"\r", "\n"})


@given(TEXTS)
@example("\u212b")
@example("cafe\u0301")
def test_unicode_composition_does_not_count(text: str) -> None:
    """NFC and NFD are one text."""
    assert fingerprint(unicodedata.normalize("NFC", text)) == fingerprint(unicodedata.normalize("NFD", text))


@given(st.lists(LINES, min_size=2), st.sampled_from(["\r\n", "\r"]))
def test_line_ends_do_not_count(lines: list[str], end: str) -> None:
    """CRLF, CR and LF are one line end."""
    assert fingerprint("\n".join(lines)) == fingerprint(end.join(lines))


@given(
    st.lists(LINES, min_size=1),
    st.lists(st.sampled_from(["", " ", "\t", " \t "]), min_size=1),
    st.sampled_from(["", "\n", "\n\n \n"]),
)
@example(["a", "b"], ["\t"], "")
@example(["a", "b"], [" "], "")
def test_trailing_blanks_and_final_newlines_do_not_count(lines: list[str], blanks: list[str], end: str) -> None:
    """What an editor strips on saving changes nothing."""
    trailing = itertools.cycle(blanks)
    assert fingerprint("\n".join(lines)) == fingerprint("\n".join(line + next(trailing) for line in lines) + end)


@pytest.mark.parametrize(
    ("one", "other"), [("a  b", "a b"), (" a", "a"), ("a\n\nb", "a\nb"), ("A", "a"), ("a\xa0", "a"), ("ﬁ", "fi")]
)
def test_other_differences_of_text_count(one: str, other: str) -> None:
    """Inner blanks, indentation, empty lines, case and compatibility forms are content: a patch consists of them."""
    assert fingerprint(one) != fingerprint(other)


@given(BROKEN_TEXTS)
def test_folding_twice_changes_nothing(text: str) -> None:
    """Folding is idempotent, so a folded text that is handed on counts as before."""
    assert fold_text(text) == fold_text(fold_text(text))


U1, U2 = "0b6f4a1e-5c3d-4f2a-9b8c-7d6e5f4a3b2c", "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"run {U1} failed", f"run {U2.upper()} failed"),
        ("at 2026-01-01T00:00:00Z: no", "at 2027-12-31T23:59:59.123456+02:00: no"),
        ("at 2026-01-01 00:00: no", "at 2026-01-02 10:30: no"),
        ("2026-01-01 00:00:00,123 ERROR", "2026-01-01 00:00:01,999 ERROR"),
        ("/tmp/tmpab12/f.py: no", "/tmp/tmpcd34/f.py: no"),
        ("/var/tmp/x1/f.py: no", "/tmp/x2/f.py: no"),
        ("/private/tmp/x1/f.py: no", "/tmp/x2/f.py: no"),
        ("see '/var/folders/zz/abc123/T/tmp1/f.py'", "see '/var/folders/zz/xyz789/T/tmp2/f.py'"),
        ("0x7f12ab34cd56", "0x7f99ffeeddcc"),
        (r"C:\Users\me\AppData\Local\Temp\tmp1\f.py", r"C:\Users\me\AppData\Local\Temp\tmp2\f.py"),
        ("wrote /tmp/tmpab12", "wrote /tmp/tmpcd34"),
        ("<Agent object at 0x7f12ab34cd56>", "<Agent object at 0x7f99ffeeddcc>"),
        (UUID(U1), UUID(U2)),
        (datetime(2026, 1, 1), datetime(2026, 1, 2)),
        ({"id": "call_1", "name": "grep"}, {"id": "call_2", "name": "grep"}),
        ({"id": "call_1", "name": "grep"}, {"name": "grep"}),
        ({"tool_call_id": "toolu_01AbC"}, {"tool_call_id": "toolu_02XyZ"}),
        ({"message_id": f"run-{U1}"}, {"message_id": f"lc_run--{U2}"}),
        ({"messageId": "msg_a1"}, {"messageId": "msg_b2"}),
        ({"traceID": "4bf92f3577b34da6a3ce929d0e0e4736"}, {"traceID": "00f067aa0ba902b7"}),
        ({"id": U1}, {"id": U2}),
        ([{"deep": {"id": "chatcmpl-1"}}], [{"deep": {"id": "chatcmpl-2"}}]),
    ],
)
def test_volatile_text_is_scrubbed(one: Any, other: Any) -> None:
    """What is made anew at each run does not make a repeat look new; `scrub=False` compares it."""
    assert fingerprint(one) == fingerprint(other)
    assert exact(one) != exact(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 failures", "2 failures"),
        ("line 12", "line 13"),
        ("took 1.5 s", "took 1.6 s"),
        ("2026-01-01", "2026-01-02"),
        ("port 8080", "port 8081"),
        ("commit 0123456789abcdef0123", "commit 0123456789abcdef0124"),
        ("deadbeef", "deadbeee"),
        ("0x1f", "0x2f"),
        ("/home/a/f.py", "/home/b/f.py"),
        ("/tmp/x/f.py", "/tmp/x/g.py"),
        ("src/tmp/x/f.py", "src/tmp/y/f.py"),
        ("run " + U1, "walk " + U1),
        ({"id": "17"}, {"id": "18"}),
        ({"id": 17}, {"id": 18}),
        ({"id": "alice"}, {"id": "bob"}),
        ({"name": "call_1"}, {"name": "call_2"}),
        ({"finding_id": "F-1"}, {"finding_id": "F-2"}),
        ({"id": "17"}, {}),
    ],
)
def test_plain_numbers_and_names_are_not_scrubbed(one: Any, other: Any) -> None:
    """Three failures, then two, is progress; so is the next file, line, date or item."""
    assert fingerprint(one) != fingerprint(other)


def test_an_instant_is_one_in_every_time_zone() -> None:
    """Aware datetimes count by their instant, naive ones as they stand."""
    utc = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    there = utc.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert exact(utc) == exact(there)
    assert 3 == len({exact(utc), exact(utc.replace(tzinfo=None)), exact(utc + timedelta(seconds=1))})


# -- settings ----------------------------------------------------------------------------------------------------------


def test_ignored_keys_do_not_count_at_any_depth() -> None:
    """`ignore` names keys; the others still count."""
    fingerprinter = Fingerprinter(ignore={"seed"})
    assert fingerprinter.fingerprint([{"seed": 1, "x": 2}]) == fingerprinter.fingerprint([{"seed": 9, "x": 2}])
    assert fingerprinter.fingerprint({"seed": 1, "x": 2}) != fingerprinter.fingerprint({"seed": 1, "x": 3})
    assert {"x": 2} == fingerprinter.fingerprints({"seed": 1, "x": 2})


def test_normalizers_run_in_order_over_every_text() -> None:
    """Each function gets what the one before has made of the folded, scrubbed text."""
    fingerprinter = Fingerprinter(normalize=(str.lower, lambda text: text.replace("a", "b")))
    assert fingerprinter.fingerprint({"k": "AAA"}) == Fingerprinter().fingerprint({"k": "bbb"})
    assert Fingerprinter(normalize=str.lower).fingerprint("ONE") == fingerprint("one")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ignore": "id"}, "ignore must be a collection of key names, got 'id'"),
        ({"ignore": 5}, "ignore must be a collection of key names, got 5"),
        ({"ignore": None}, "ignore must be a collection of key names, got None"),
        ({"scrub": "no"}, "scrub must be True or False, got 'no'"),
        ({"scrub": 0}, "scrub must be True or False, got 0"),
        ({"normalize": 5}, "normalize must hold functions from str to str, got 5"),
        ({"normalize": [str.lower, "upper"]}, "normalize must hold functions from str to str, got 'upper'"),
    ],
)
def test_nonsense_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    """The error names the parameter and the value."""
    with pytest.raises(ValueError, match="must") as error:
        Fingerprinter(**settings)
    assert message == str(error.value)


@pytest.mark.parametrize("payload", ["x", ["x"], {"k": "x"}, {"k": ["x y"]}])
def test_a_normalizer_that_gives_no_text_is_refused(payload: Any) -> None:
    """The error names the function and what it gave."""
    with pytest.raises(FingerprintError, match=r"normalize must hold functions from str to str, but .* gave 7"):
        Fingerprinter(normalize=lambda text: 7).fingerprint(payload)  # type: ignore[arg-type, return-value]


def test_fingerprinter_is_a_value() -> None:
    """Equal settings are equal, hashable and cannot be changed."""
    one = Fingerprinter(ignore=["a", "b"])
    assert (one, hash(one)) == (Fingerprinter(ignore=("b", "a")), hash(Fingerprinter(ignore={"a", "b"})))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.scrub = False  # type: ignore[misc]


def test_fingerprints_are_one_per_key() -> None:
    """Each key of an update has its own; whole numbers stand as themselves, so that a counter can be told."""
    found = Fingerprinter().fingerprints(
        {"n": 3, "patch": "x", "done": True, "big": 2**63, "id": "call_1", "run_id": "17", 1: "y", Word("w"): "z"}
    )
    assert {
        "n": 3,
        "patch": fingerprint("x"),
        "done": fingerprint(True),
        "big": fingerprint(2**63),
        "run_id": fingerprint("17"),
        "<1>": fingerprint("y"),
        "w": fingerprint("z"),
    } == found
    assert {str} == {type(key) for key in found}


@pytest.mark.parametrize(
    ("number", "stands"),
    [(2**63 - 1, True), (2**63, False), (-(2**63), True), (-(2**63) - 1, False), (2**64, False), (0, True)],
)
def test_only_whole_numbers_of_64_bits_stand_as_themselves(number: int, stands: bool) -> None:
    """The ledger must fit into a checkpoint."""
    assert stands is (number == Fingerprinter().fingerprints({"n": number})["n"])


@given(st.dictionaries(st.one_of(BROKEN_TEXTS, st.integers()), JSON, max_size=4))
def test_names_of_keys_fit_into_a_checkpoint(update: dict[Any, Any]) -> None:
    """The ledger holds the names of keys, so they must be text that every saver keeps as it is."""
    found = Fingerprinter().fingerprints(update)
    assert found == restored(found)


# -- what has no canonical form ----------------------------------------------------------------------------------------


def endless_list() -> Any:
    out: list[Any] = []
    out.append(out)
    return out


def endless_dict() -> Any:
    out: dict[str, Any] = {"x": 1}
    out["left"] = out["right"] = {"up": out}
    return out


def endless_queue() -> Any:
    out: deque[Any] = deque()
    out.append({"k": out})
    return out


class Frame:
    """Says itself what it is, as a pandas frame does."""

    def to_dict(self) -> dict[str, Any]:
        return {"a": [1]}


def endless_object() -> Any:
    finding = Finding("a.py", 1)
    finding.line = finding  # type: ignore[assignment]
    return finding


@pytest.mark.parametrize(
    "payload",
    [
        object(),
        {"k": object()},
        [lambda: None],
        (item for item in ()),
        int,
        Finding,
        {"v": {1: 2}.values()},
        {object(): 1},
        endless_list(),
        endless_dict(),
        endless_queue(),
        Frame,
        endless_object(),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_what_has_no_canonical_form_is_refused(payload: Any) -> None:
    """An object of an unknown kind, or one that contains itself, gives an error that says so, and quickly."""
    with pytest.raises(FingerprintError, match=r"no canonical form|contains itself"):
        fingerprint(payload)


def looped(key: Any) -> Any:
    """A payload with a cycle below `a[1]`, through an object."""
    top = Finding("a.py", 1)
    top.line = {key: (0, top)}  # type: ignore[assignment]
    return {"a": [{}, top]}


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (endless_list(), "payload contains itself: [0] is the payload again"),
        (endless_dict(), "payload contains itself: left.up is the payload again"),
        (looped("k"), "payload contains itself: a[1].line.k[1] is a[1] again"),
        (looped(None), "payload contains itself: a[1].line[None][1] is a[1] again"),
    ],
)
def test_a_payload_that_contains_itself_says_where(payload: Any, message: str) -> None:
    """The error has both places."""
    with pytest.raises(FingerprintError) as error:
        fingerprint(payload)
    assert message == str(error.value)


def test_the_same_object_in_two_places_is_no_cycle() -> None:
    """It counts twice, at any depth."""
    shared: Any = {"a": [1]}
    for _ in range(8):
        shared = {"left": shared, "right": [shared]}
    copied = json.loads(json.dumps(shared))
    assert fingerprint(copied) == fingerprint(shared)


def test_a_payload_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few objects that hold one another many times over are more values than can be hashed."""
    monkeypatch.setattr(canonical, "MAX_ITEMS", 20_000)
    wide: Any = ["x"]
    for _ in range(30):
        wide = [wide, wide]
    for payload in (wide, {"k": [b"", wide]}, {"k": {1: wide}}):
        with pytest.raises(FingerprintError, match="payload holds more than 20000 values"):
            fingerprint(payload)


def test_deep_payloads_have_a_fingerprint_up_to_a_limit() -> None:
    """200 levels count, one more is refused; no recursion error either way."""
    nested: Any = "leaf"
    for _ in range(200):
        nested = [nested]
    assert 32 == len(fingerprint(nested))
    with pytest.raises(FingerprintError, match="200 levels"):
        fingerprint([nested])


def test_the_depth_limit_holds_far_down_a_stack() -> None:
    """A graph calls from many frames below its caller; the refusal is still our own error."""

    def sink(levels: int) -> str:
        return sink(levels - 1) if levels else fingerprint(endless_list())

    with pytest.raises(FingerprintError):
        sink(400)


def test_objects_that_say_what_they_are_count_by_that() -> None:
    """`to_dict` and `tolist` are how arrays and frames become plain, whatever library they are of."""

    assert fingerprint({"a": [1]}) == fingerprint(Frame())


def test_numpy_counts_by_content() -> None:
    """Arrays and scalars are the lists and numbers that they hold."""
    numpy = pytest.importorskip("numpy")
    array = numpy.array([[1, 2], [3, 4]])
    assert fingerprint([[1, 2], [3, 4]]) == fingerprint(array)
    assert fingerprint(array) == fingerprint(array.astype("float32"))
    assert fingerprint(array) != fingerprint(array.T)
    for scalar, plain in [
        (numpy.int64(7), 7),
        (numpy.float64(0.5), 0.5),
        (numpy.float32(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.str_("a"), "a"),
        (numpy.float64("nan"), math.nan),
    ]:
        assert fingerprint(plain) == fingerprint(scalar)
        assert fingerprint({"k": plain}) == fingerprint({"k": scalar})

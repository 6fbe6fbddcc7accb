"""Span patching: the new value reads back as given, and every byte outside the value's span stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.transcript import patching

_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4), max_leaves=12
)


def _places(value: Any, path: patching.Path = ()) -> list[patching.Path]:
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += _places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += _places(item, (*path, number))
    return found


def _at(value: Any, path: patching.Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _with(value: Any, path: patching.Path, new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {k: _with(v, path[1:], new) if k == path[0] else v for k, v in value.items()}
    return [_with(v, path[1:], new) if n == path[0] else v for n, v in enumerate(value)]


def _encode(value: Any, data: st.DataObject) -> bytes:
    """JSON in one of the spellings that real writers use."""
    style = data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    return json.dumps(value, ensure_ascii=True, separators=style).encode()


@given(_VALUES, _VALUES, st.data())
@settings(max_examples=150, deadline=None)
def test_replace_value_changes_only_the_span_and_reads_back(document: Any, new: Any, data: st.DataObject) -> None:
    raw = b" " + _encode(document, data) + b" "
    path = data.draw(st.sampled_from(_places(document)))
    start, stop = patching.find_span(raw, path)
    assert json.loads(raw[start:stop]) == _at(document, path)
    result = patching.replace_value(raw, path, new)
    assert result[:start] == raw[:start]
    assert result.endswith(raw[stop:])
    assert json.loads(result) == _with(document, path, new)


@given(_VALUES, st.data())
@settings(max_examples=100, deadline=None)
def test_remove_value_equals_removal_from_the_decoded_value(document: Any, data: st.DataObject) -> None:
    raw = _encode(document, data)
    places = [p for p in _places(document) if p]
    if not places:
        with pytest.raises(patching.PathNotFoundError):
            patching.remove_value(raw, ())
        return
    path = data.draw(st.sampled_from(places))
    expected = json.loads(raw)
    del _at(expected, path[:-1])[path[-1]]
    assert json.loads(patching.remove_value(raw, path)) == expected


@given(st.lists(_VALUES, max_size=4), _VALUES, st.data())
@settings(max_examples=60, deadline=None)
def test_insert_item_equals_list_insert(items: list[Any], new: Any, data: st.DataObject) -> None:
    raw = _encode({"a": items, "b": 1}, data)
    position = data.draw(st.integers(0, len(items)))
    expected = [*items[:position], new, *items[position:]]
    assert json.loads(patching.insert_item(raw, ("a",), position, new)) == {"a": expected, "b": 1}


@given(st.dictionaries(_TEXT, _SCALARS, max_size=4), _TEXT, _VALUES, st.data())
@settings(max_examples=60, deadline=None)
def test_set_member_equals_assignment(members: dict[str, Any], key: str, new: Any, data: st.DataObject) -> None:
    raw = _encode({"m": members}, data)
    assert json.loads(patching.set_member(raw, ("m", key), new)) == {"m": {**members, key: new}}


def test_invalid_utf8_numbers_and_key_order_survive() -> None:
    raw = b'{"z":1.50,"bad\xff":"\xc3(","n":{"text":"old"},"big":12345678901234567890123,"u":"\\ud83d"}'
    result = patching.replace_value(raw, ("n", "text"), "neu ü")
    assert result == raw.replace(b'"old"', '"neu ü"'.encode())
    assert patching.read_value(raw, ("bad\udcff",)) == "\udcc3("


def test_of_a_repeated_key_the_last_one_is_replaced_as_json_loads_reads_it() -> None:
    raw = b'{"a":1,"a":{"b":2}}'
    assert json.loads(patching.replace_value(raw, ("a", "b"), 3)) == {"a": {"b": 3}}


def test_several_values_at_once_and_overlap_refused() -> None:
    raw = b'{"a":[1,2,3],"b":"x"}'
    assert patching.replace_values(raw, [(("b",), "y"), (("a", 1), [])]) == b'{"a":[1,[],3],"b":"y"}'
    with pytest.raises(ValueError, match="overlap"):
        patching.replace_values(raw, [(("a",), 0), (("a", 1), 1)])


def test_a_lone_surrogate_in_the_new_value_is_written_as_an_escape() -> None:
    assert patching.replace_value(b'{"a":1}', ("a",), "x\ud83d") == b'{"a":"x\\ud83d"}'


@pytest.mark.parametrize(
    ("raw", "path"),
    [(b'{"a":1}', ("b",)), (b"[1]", (1,)), (b'{"a":1}', ("a", "b")), (b'{"a":"cut', ("a",)), (b'{"0":1}', (0,))],
)
def test_absent_places_are_named(raw: bytes, path: patching.Path) -> None:
    with pytest.raises(patching.PathNotFoundError):
        patching.replace_value(raw, path, 1)


def test_deep_nesting_and_long_strings_need_no_recursion() -> None:
    raw = b'{"deep":' + b"[" * 50_000 + b"]" * 50_000 + b',"s":"' + b"\\n" * 300_000 + b'","v":1}'
    assert patching.replace_value(raw, ("v",), 2).endswith(b'","v":2}')

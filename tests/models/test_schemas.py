from __future__ import annotations

from memorybench.models.schemas import closed


def test_every_object_is_closed_and_every_field_required() -> None:
    schema = {
        "type": "object",
        "properties": {
            "facts": {"type": "array", "items": {"$ref": "#/$defs/Fact"}},
            "minimum": {"anyOf": [{"type": "object", "properties": {"x": {}}}, {"type": "null"}], "default": None},
        },
        "required": ["facts"],
        "$defs": {"Fact": {"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}}},
    }
    before = repr(schema)
    assert closed(schema, without={"default", "minimum", "minLength"}) == {
        "type": "object",
        "properties": {
            "facts": {"type": "array", "items": {"$ref": "#/$defs/Fact"}},
            "minimum": {
                "anyOf": [
                    {"type": "object", "properties": {"x": {}}, "required": ["x"], "additionalProperties": False},
                    {"type": "null"},
                ]
            },
        },
        "required": ["facts", "minimum"],
        "additionalProperties": False,
        "$defs": {
            "Fact": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": False,
            }
        },
    }
    assert repr(schema) == before


def test_limits_stay_where_they_are_not_refused() -> None:
    assert closed({"type": "integer", "minimum": 1, "default": 3}) == {"type": "integer", "minimum": 1}


def test_a_schema_is_closed_once_for_each_set_of_refused_keywords() -> None:
    schema = {"type": "object", "properties": {"x": {"default": 1}}}
    assert closed(schema) is closed(schema)
    assert closed(schema)["properties"] == {"x": {}}
    assert closed(schema, without=())["properties"] == {"x": {"default": 1}}


def test_a_schema_is_not_taken_for_one_that_is_gone() -> None:
    for n in range(1_000):  # the next is often made at the address of the last
        assert closed({"type": "object", "properties": {f"x{n}": {}}})["required"] == [f"x{n}"]

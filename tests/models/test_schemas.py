from __future__ import annotations

from memorybench.models.replying import closed


def test_objects_require_all_properties_and_allow_no_others() -> None:
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


def test_only_the_named_keywords_are_removed() -> None:
    assert closed({"type": "integer", "minimum": 1, "default": 3}) == {"type": "integer", "minimum": 1}

from __future__ import annotations

from memorybench.files.located import Document, format_place


def lines(place):
    return {(): 1, ("rateLimit",): 4, ("rateLimit", "addDelayMs"): 5}.get(place)


DOCUMENT = Document("p.yaml", {"rateLimit": {"addDelayMs": 3}}, lines)


def test_a_place_is_spelled_as_people_write_it():
    assert format_place(("endpoints", "add", "path")) == "endpoints.add.path"
    assert format_place((3, "question")) == "[3].question"
    assert format_place(("turns", 0, 1, "x-y")) == "turns[0][1].x-y"


def test_a_key_with_odd_characters_stays_one_printable_line():
    assert format_place(("headers", "a b.c")) == 'headers["a b.c"]'
    assert format_place(("a\nb\u202e",)) == '["a\\nb\\u202e"]'


def test_where_names_file_line_and_place():
    assert DOCUMENT.where("rateLimit", "addDelayMs") == "p.yaml:5: rateLimit.addDelayMs"
    assert DOCUMENT.where() == "p.yaml:1"


def test_a_place_named_in_snake_case_is_found_and_spelled_as_the_file_has_it():
    assert DOCUMENT.where("rate_limit", "add_delay_ms") == "p.yaml:5: rateLimit.addDelayMs"


def test_an_absent_place_has_the_line_of_what_should_hold_it():
    assert DOCUMENT.where("rateLimit", "max_retries") == "p.yaml:4: rateLimit.max_retries"


def test_a_part_of_a_document_still_knows_its_file_and_line():
    part = DOCUMENT.at("rate_limit")
    assert part.value == {"addDelayMs": 3}
    assert part.where("add_delay_ms") == "p.yaml:5: rateLimit.addDelayMs"


def test_a_value_from_no_file_has_no_line():
    assert Document("request", {"a": 1}).where("a") == "request: a"

"""For random nested data, every leaf that a path of the mapping matches is read or reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorybench.core.errors import BadInput
from memorybench.datasets.locating import local_source
from memorybench.datasets.mapped import MappedDataset, open_mapped
from memorybench.datasets.paths import parse_path
from memorybench.datasets.survey import Survey
from memorybench.files.located import Place
from tests.datasets.described import config

_names = st.sampled_from(["turns", "text", "parts", "who", "gold", "x"])
_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(0, 9), st.text("abc", max_size=3), st.just("word"), st.just("a b")
)
_nested = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3), max_leaves=12
)
_turns = st.lists(
    st.fixed_dictionaries({"text": st.sampled_from(["one", "two", ""])}, optional={"who": _leaves, "parts": _nested}),
    min_size=1,
    max_size=3,
)
_history = st.lists(
    _turns | st.fixed_dictionaries({"turns": _turns | st.lists(_turns, max_size=2)}) | _nested, max_size=3
)
_fields = st.sampled_from(["h", "h[*]", "$.h[*].turns", "$.h..turns", "$.h.*"])
_contents = st.sampled_from(["text", "$..text", "parts[*]", "$.parts | $.text", "$.*"])
_within = st.sampled_from([None, "turns", "$.turns[*]", "$.turns[*][*]", "$..turns[*]"])
_speakers = st.sampled_from([None, "who", "$.parts[*]"])
_evidence = st.sampled_from(["gold", "$.gold[*]", "$.gold..*", "$..gold", "$.gold..x"])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data") / "sample.json"


def opened(
    file: Path, item: dict[str, Any], schema: dict[str, Any], survey: Survey | None = None
) -> MappedDataset | None:
    """None: the data is refused, with its file and place."""
    file.write_text(json.dumps([item]))
    refusal = None
    try:
        return open_mapped(config(schema), local_source(config(schema), file), lambda: "checksum", survey=survey)
    except BadInput as error:
        refusal = error
    assert "sample.json" in refusal.where
    return None


def answers(gold: Any) -> dict[str, Any]:
    return {"id": "q", "question": "?", "answer": "a", "gold": gold}


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=_history, field=_fields, content=_contents, within=_within, speaker=_speakers)
def test_every_text_of_a_turn_is_read_or_the_data_is_refused(
    file: Path, history: Any, field: str, content: str, within: str | None, speaker: str | None
) -> None:
    schema = {"content": content} | ({"speaker": speaker} if speaker else {})
    context = {"field": field, "itemSchema": schema} | ({"turnsField": within} if within else {})
    item = answers([]) | {"h": history}
    dataset = opened(file, item, {"context": context})
    if dataset is None:
        return
    turns = [turn for session in dataset.haystack("q").sessions for turn in session.turns]
    read = "\n".join(turn.content for turn in turns)
    empty = next((int(note.rpartition(" ")[2]) for note in dataset.notes if note.startswith("empty turns")), 0)
    found = matched_turns(item, field, within)
    assert len(turns) + empty == len(found)
    for turn in found:
        if isinstance(turn, dict):
            leaves = [leaf for match in parse_path(content, "").all(turn) for leaf in flat(match)]
            texts = [str("" if leaf is None else leaf).strip() for leaf in leaves]
            assert all(text in read for text in texts)
            matched = parse_path(speaker, "").all(turn) if speaker else []
            assert len(matched) <= 1 or not any(texts), "an empty turn is skipped and counted, whoever spoke"
        else:
            assert str(turn).strip() in read


def matched_turns(item: Any, field: str, within: str | None) -> list[Any]:
    """What the paths match, by another way: members of the history, and the turns in each."""
    path = parse_path(field, "")
    members = path.first(item) if path.singular else path.all(item)
    found = []
    for member in members:
        if isinstance(member, dict) and within is not None:
            found += [turn for match in parse_path(within, "").all(member) for turn in flat(match)]
        else:
            found += flat(member)
    return [turn for turn in found if not (within is not None and turn is None)]


def flat(value: Any) -> list[Any]:
    return [leaf for member in value for leaf in flat(member)] if isinstance(value, list) else [value]


def placed(value: Any, place: Place) -> list[tuple[Place, Any]]:
    """The members of nested lists, with their places."""
    if not isinstance(value, list):
        return [(place, value)]
    return [found for n, member in enumerate(value) for found in placed(member, (*place, n))]


def inner(value: Any, place: Place) -> list[Place]:
    """The places of what is in objects and lists."""
    if not isinstance(value, dict | list):
        return [place]
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for step, member in steps for found in inner(member, (*place, step))]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(gold=_nested, path=_evidence)
def test_every_evidence_id_is_resolved_or_counted(file: Path, gold: Any, path: str) -> None:
    turns = [{"text": "one", "n": n} for n in range(10)]
    context = {"field": "h", "itemSchema": {"content": "text", "dialogId": "n"}}
    schema = {"context": context, "evidence": path, "evidenceLevel": "turn"}
    dataset = opened(file, answers(gold) | {"h": turns}, schema)
    if dataset is None:
        return
    matches = parse_path(path, "").located(answers(gold))
    found = {at: leaf for place, match in matches for at, leaf in placed(match, place)}
    values = {at for at, leaf in found.items() if not isinstance(leaf, dict)}
    # an object is read if what is in it is matched, too
    read = {at for at, leaf in found.items() if isinstance(leaf, dict) and values.issuperset(inner(leaf, at))}
    cited = {str(leaf) for at, leaf in found.items() if leaf is not None and at not in read}
    (question,) = dataset.questions
    dropped = next((int(note.rpartition(" ")[2]) for note in dataset.notes if note.startswith("unknown evidence")), 0)
    assert set(question.gold_turns) <= cited
    assert len(question.gold_turns) + dropped == len(cited)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(quiz=_nested, path=st.sampled_from(["quiz", "$.quiz.*", "$.quiz[*]", "$.quiz..*", "$.quiz.*.*"]))
def test_every_question_is_read_or_the_data_is_refused(file: Path, quiz: Any, path: str) -> None:
    context = {"field": "h", "itemSchema": {"content": "text"}}
    questions = {"field": path, "questionField": "text", "answerField": "gold"}
    item = {"id": "q", "quiz": quiz, "h": [{"text": "one"}]}
    dataset = opened(file, item, {"question": None, "answer": None, "questions": questions, "context": context})
    if dataset is not None:
        found = [question for match in parse_path(path, "").all(item) for question in flat(match)]
        assert len(dataset.questions) == len(found)


_present = st.fixed_dictionaries({}, optional={"id": st.just(True), "day": st.just(True), "t": st.just(True)})
_shapes = st.sampled_from(
    [
        {"field": "h", "turnsField": "t", "idField": "$.h[*].id"},
        {"field": "h", "turnsField": "t", "idField": "$.h[*].id", "dateField": "$.h[*].day"},
        {"field": "$.h[*].t", "idField": "$.h[*].id", "dateField": "$.h[*].day"},
        {"field": "h", "turnsField": "t", "sessionSchema": {"id": "id", "date": "day"}},
    ]
)


def counted(dataset: MappedDataset, words: str) -> int:
    """The count of the notes with these words."""
    return sum(int(note.rpartition(" ")[2].replace(",", "")) for note in dataset.notes if words in note)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(present=st.lists(_present, min_size=1, max_size=4), context=_shapes, upto=st.none() | st.integers(1, 4))
def test_ids_and_dates_stay_with_their_sessions(
    file: Path, present: list[dict[str, bool]], context: dict[str, Any], upto: int | None
) -> None:
    values = [{"id": f"i{n}", "day": f"2024-01-0{n + 1}", "t": [f"t{n}"]} for n in range(len(present))]
    history = [{key: value[key] for key in keys} for keys, value in zip(present, values, strict=True)]
    prefix = {} if upto is None else {"prefix": "upto"}
    schema = {"context": context | prefix, "evidence": "gold"}
    ids = [one["id"] for one in history if "id" in one]
    dataset = opened(file, answers(ids) | {"h": history, "upto": upto}, schema)
    if dataset is None:
        return
    is_direct = context["field"] != "h"
    members = [one for one in history if "t" in one or not is_direct]
    read = [one for one in members[:upto] if "t" in one]
    sessions = {session.id: session for session in dataset.haystack("q").sessions}
    assert [session.turns[0].content for session in sessions.values()] == [one["t"][0] for one in read]
    days = [session.at.isoformat()[:10] if session.at else None for session in sessions.values()]
    has_dates = "dateField" in context or "sessionSchema" in context
    assert days == [one.get("day") if has_dates else None for one in read]
    gold = [sessions[id].turns[0].content for id in dataset.questions[0].gold_sessions]
    assert sorted(gold) == sorted(one["t"][0] for one in read if "id" in one)
    assert counted(dataset, "after the last question") == len(members) - len(members[:upto])


_quizzes = st.recursive(st.just(True), lambda inner: st.lists(inner, max_size=2), max_leaves=3)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(groups=st.lists(st.lists(st.none() | _quizzes, max_size=3), max_size=3), is_grouped=st.booleans())
def test_a_question_is_asked_after_the_session_that_contains_it(
    file: Path, groups: list[list[Any]], is_grouped: bool
) -> None:
    def quiz(shape: Any, name: str) -> Any:
        return [quiz(one, name) for one in shape] if isinstance(shape, list) else {"text": name, "gold": "x"}

    def session(shape: Any, name: str) -> dict[str, Any]:
        return {"t": [name]} | ({} if shape is None else {"quiz": quiz(shape, name)})

    nested = [{"s": [session(shape, f"{g}-{n}") for n, shape in enumerate(group)]} for g, group in enumerate(groups)]
    flat_list = [one for group in nested for one in group["s"]]
    field = "$.g[*].s[*]" if is_grouped else "$.s[*]"
    questions = {"field": f"{field}.quiz", "questionField": "text", "answerField": "gold"}
    questions |= {"prefixField": "@parentIndex", "labels": {"n": "@parentIndex"}}
    schema = {"question": None, "answer": None, "context": {"field": field, "turnsField": "t"}, "questions": questions}
    dataset = opened(file, {"id": "q", "g": nested, "s": flat_list}, schema)
    if dataset is None:
        return
    assert len(dataset.questions) == sum(len(flat(one["quiz"])) for one in flat_list if "quiz" in one)
    for question in dataset.questions:
        sessions = dataset.haystack(question.haystack).sessions
        assert sessions[-1].turns[0].content == question.question
        assert question.labels["n"] == str(len(sessions))


_kept_turns = st.lists(
    st.fixed_dictionaries({"c": st.sampled_from(["a", ""])}, optional={"keep": st.just(1)}), max_size=3
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    history=st.lists(_kept_turns, min_size=1, max_size=3),
    within=st.sampled_from(["t[?@.keep]", "$..t[?@.keep]", "$..[?@.keep]", "$.t[?@.keep == 1]"]),
)
def test_turns_that_a_filter_leaves_out_are_counted(file: Path, history: Any, within: str) -> None:
    context = {"field": "h", "turnsField": within, "itemSchema": {"content": "c"}}
    dataset = opened(file, answers([]) | {"h": [{"t": turns} for turns in history]}, {"context": context})
    if dataset is not None:
        read = sum(len(session.turns) for session in dataset.haystack("q").sessions)
        others = counted(dataset, "empty turns") + counted(dataset, "filters in schema.context")
        assert read + others == sum(map(len, history))


_keys = st.sampled_from(["s_1", "s_2", "s_03", "s_2b", "S_4", "s_1_day", "s_03_day", "s_9_day", "about"])


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(keys=st.sets(_keys, min_size=1))
def test_every_key_of_a_history_is_read_or_listed(file: Path, keys: set[str]) -> None:
    history = {key: "2024-01-01" if key.endswith("_day") else [key] for key in sorted(keys)}
    context = {"field": "h", "type": "object", "sessionPattern": "s_*", "datePattern": "s_*_day"}
    survey = Survey()
    dataset = opened(file, answers([]) | {"h": history}, {"context": context}, survey)
    if dataset is not None:
        sessions = dataset.haystack("q").sessions
        dated = sum(session.at is not None for session in sessions)
        listed = len(survey.history_keys) + counted(dataset, "dates of sessions")
        assert len(sessions) + dated + listed == len(keys)

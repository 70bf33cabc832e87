"""Audit datasets with one thing wrong in each, made from valid ones, and what must be said of it."""

from __future__ import annotations

from typing import NamedTuple

VALID = """\
{
  "id": "small",
  "conversations": [
    {
      "id": "c1",
      "turns": [
        {"role": "user", "content": "I live in Ghent.", "timestamp": "2024-03-01T09:00:00"},
        {"role": "assistant", "content": "Noted.", "timestamp": "2024-03-01T09:01:00"},
        {"role": "user", "content": "I have moved to Bruges.", "timestamp": "2024-04-01T09:00:00"}
      ],
      "facts": [
        {"id": "f1", "content": "User lives in Ghent", "timestamp": "2024-03-01", "category": "personal",
         "subject": "user", "attribute": "home town", "value": "Ghent",
         "validFrom": "2024-03-01", "validTo": "2024-04-01", "turn": 1},
        {"id": "f2", "content": "User lives in Bruges", "timestamp": "2024-04-01T09:00:00", "supersedes": "f1",
         "subject": "user", "attribute": "home town", "value": "Bruges", "turn": "t3"},
        {"id": "f3", "content": "User likes rain", "category": "preference"}
      ]
    },
    {
      "id": "c2",
      "turns": [
        {"role": "user", "content": "My cat is called Minou."}
      ],
      "facts": [
        {"id": "g1", "content": "User's cat is called Minou"}
      ]
    }
  ]
}
"""

ROW = (
    '{"id": "c1", "turns": [{"role": "user", "content": "Hi."}], "facts": [{"id": "f1", "content": "User said hi"}]}\n'
)
VALID_ROWS = ROW + ROW.replace("c1", "c2") + ROW.replace("c1", "c3")


class Broken(NamedTuple):
    name: str
    line: int
    place: str
    """The JSON path that must be named; nothing, where the file as a whole is wrong."""
    problem: str
    remedy: str
    old: str
    new: str
    rows: bool = False

    @property
    def text(self) -> str:
        valid = VALID_ROWS if self.rows else VALID
        assert valid.count(self.old) == 1, f"{self.name}: {self.old!r} stands {valid.count(self.old)} times"
        return valid.replace(self.old, self.new)


_C1, _C2 = "conversations[0]", "conversations[1]"
_F1, _F2, _F3 = (f"{_C1}.facts[{index}]" for index in range(3))
_, _ROW_2, _ROW_3 = VALID_ROWS.splitlines(keepends=True)

BROKEN = [
    Broken("a comma too many", 8, "", "invalid JSON at column", "correct the line", '09:01:00"},', '09:01:00"},,'),
    Broken("cut off", 17, "", "truncated JSON", "write the file again", VALID[VALID.index('likes rain"') :], ""),
    Broken("key twice", 2, "id", "duplicate key", "remove one", '"id": "small"', '"id": "small", "id": "large"'),
    Broken("no dataset id", 1, "", '"id" is missing', "add it", '  "id": "small",\n', ""),
    Broken("a dataset that is a list", 1, "", "a mapping of keys", "", VALID, "[]\n"),
    Broken(
        "conversations that are none", 1, "", "no conversations", "write one", VALID, '{"id": "x", "conversations": []}'
    ),
    Broken(
        "a conversation that is text", 20, _C2, "is ", "", VALID[VALID.index('    {\n      "id": "c2"') :], '    "c2"]}'
    ),
    Broken(
        "a misspelt key",
        17,
        f"{_F3}.categry",
        "unknown key",
        '"category"',
        '"category": "preference"',
        '"categry": "preference"',
    ),
    Broken("an unknown key", 23, f"{_C2}.turns[0].mood", "unknown key", "", 'Minou."}', 'Minou.", "mood": "fine"}'),
    Broken("no content", 17, _F3, '"content" is missing', "add it", '"content": "User likes rain", ', ""),
    Broken(
        "no facts list",
        20,
        _C2,
        '"facts" is missing',
        "add it",
        ',\n      "facts": [\n        {"id": "g1", "content": "User\'s cat is called Minou"}\n      ]',
        "",
    ),
    Broken("content that is a number", 8, f"{_C1}.turns[1].content", "is 7", "", '"Noted."', "7"),
    Broken("value that is a number", 13, f"{_F1}.value", "is 9000", "", '"value": "Ghent"', '"value": 9000'),
    Broken(
        "supersedes that is a list", 15, f"{_F2}.supersedes", "is [", "", '"supersedes": "f1"', '"supersedes": ["f1"]'
    ),
    Broken("an unknown role", 8, f"{_C1}.turns[1].role", 'is "asistant"', '"assistant"', '"assistant"', '"asistant"'),
    Broken("an unknown category", 12, f"{_F1}.category", 'is "persona"', '"personal"', '"personal"', '"persona"'),
    Broken(
        "a conversation without turns",
        22,
        f"{_C2}.turns",
        "has no turns",
        "remove it",
        '[\n        {"role": "user", "content": "My cat is called Minou."}\n      ]',
        "[]",
    ),
    Broken("empty turn", 8, f"{_C1}.turns[1].content", "is empty", "write it", '"Noted."', '"  "'),
    Broken("empty fact", 17, f"{_F3}.content", "is empty", "write it", '"User likes rain"', '""'),
    Broken("empty id", 17, f"{_F3}.id", "is empty", "write it", '"f3"', '""'),
    Broken("empty date", 7, f"{_C1}.turns[0].timestamp", "is empty", "remove the key", '"2024-03-01T09:00:00"', '""'),
    Broken("a fact id twice", 17, f"{_F3}.id", '"f2" stands here again', "rename one", '"f3"', '"f2"'),
    Broken("a conversation id twice", 21, f"{_C2}.id", '"c1" stands here again', "rename one", '"c2"', '"c1"'),
    Broken(
        "superseding nothing",
        15,
        f"{_F2}.supersedes",
        'no fact "f9"',
        "correct it",
        '"supersedes": "f1"',
        '"supersedes": "f9"',
    ),
    Broken(
        "superseding a near name",
        15,
        f"{_F2}.supersedes",
        'no fact "F-1"',
        'did you mean "f1"?',
        '"supersedes": "f1"',
        '"supersedes": "F-1"',
    ),
    Broken(
        "superseding itself",
        15,
        f"{_F2}.supersedes",
        "supersedes itself",
        "remove one",
        '"supersedes": "f1"',
        '"supersedes": "f2"',
    ),
    Broken(
        "superseding in a ring",
        12,
        f"{_F1}.supersedes",
        '"f1" → "f2" → "f1"',
        "remove one",
        '"id": "f1"',
        '"id": "f1", "supersedes": "f2"',
    ),
    Broken(
        "superseding elsewhere",
        15,
        f"{_F2}.supersedes",
        'conversation "c2"',
        "state it here",
        '"supersedes": "f1"',
        '"supersedes": "g1"',
    ),
    Broken(
        "superseding what comes later",
        15,
        f"{_F2}.supersedes",
        "stands after",
        "move this fact",
        '"supersedes": "f1"',
        '"supersedes": "f3"',
    ),
    Broken(
        "superseded twice",
        17,
        f"{_F3}.supersedes",
        'superseded by "f2" already',
        'supersede "f2"',
        '"id": "f3"',
        '"id": "f3", "supersedes": "f1"',
    ),
    Broken(
        "superseding from the past",
        15,
        f"{_F2}.timestamp",
        'before that of "f1"',
        "correct one",
        '"timestamp": "2024-04-01T09:00:00", "supersedes"',
        '"timestamp": "2024-02-01T09:00:00", "supersedes"',
    ),
    Broken(
        "superseding another attribute",
        16,
        f"{_F2}.attribute",
        '"f1" has "home town"',
        "alike",
        '"attribute": "home town", "value": "Bruges"',
        '"attribute": "employer", "value": "Bruges"',
    ),
    Broken(
        "superseding by the same value",
        16,
        f"{_F2}.value",
        'superseded "f1"',
        "correct it",
        '"value": "Bruges"',
        '"value": "ghent"',
    ),
    Broken(
        "a date in words",
        12,
        f"{_F1}.timestamp",
        "is no date",
        "correct it",
        '"timestamp": "2024-03-01", ',
        '"timestamp": "March 1st", ',
    ),
    Broken(
        "a day that never was",
        14,
        f"{_F1}.validTo",
        "is no date",
        "correct it",
        '"validTo": "2024-04-01"',
        '"validTo": "2024-02-30"',
    ),
    Broken(
        "a date that is a number",
        7,
        f"{_C1}.turns[0].timestamp",
        "is 1709283600",
        "",
        '"2024-03-01T09:00:00"',
        "1709283600",
    ),
    Broken(
        "ending before it begins",
        14,
        f"{_F1}.validTo",
        "ends before",
        "exchange them",
        '"validTo": "2024-04-01"',
        '"validTo": "2024-01-01"',
    ),
    Broken(
        "one zone among none",
        8,
        f"{_C1}.turns[1].timestamp",
        "has a time zone where line 7",
        "alike",
        '"2024-03-01T09:01:00"',
        '"2024-03-01T09:01:00Z"',
    ),
    Broken(
        "turns out of order",
        8,
        f"{_C1}.turns[1].timestamp",
        "before that of a turn above",
        "move the turn",
        '"2024-03-01T09:01:00"',
        '"2024-02-01T09:01:00"',
    ),
    Broken(
        "a turn that is not there",
        16,
        f"{_F2}.turn",
        'no turn "t4"',
        "count turns from 1",
        '"turn": "t3"',
        '"turn": "t4"',
    ),
    Broken("a turn counted from 0", 14, f"{_F1}.turn", "no turn 0", "count turns from 1", '"turn": 1', '"turn": 0'),
    Broken(
        "a question without an answer",
        17,
        f"{_F3}.question",
        "without a value",
        'add "value"',
        '"id": "f3"',
        '"id": "f3", "question": "What does the user like?"',
    ),
    Broken(
        "both spellings of a key",
        14,
        f"{_F1}.valid_from",
        "another spelling",
        "remove one",
        '"turn": 1',
        '"turn": 1, "valid_from": "2024-03-01"',
    ),
    Broken("lone surrogate", 8, "", "lone surrogate", "complete or remove it", '"Noted."', '"\\ud83d"'),
    Broken("a torn last row", 3, "", "the last line is torn", "complete or remove", _ROW_3, _ROW_3[:40], rows=True),
    Broken("a broken row", 2, "", "invalid JSON", "correct the line", _ROW_2, _ROW_2.replace(":", ";", 1), rows=True),
    Broken(
        "a conversation id twice in rows", 3, "id", '"c1" stands here again', "rename one", '"c3"', '"c1"', rows=True
    ),
    Broken(
        "a row without facts",
        2,
        "",
        '"facts" is missing',
        "add it",
        _ROW_2,
        '{"id": "c2", "turns": [{"role": "user", "content": "Hi."}]}\n',
        rows=True,
    ),
    Broken("a row that is a list", 3, "", "a mapping of keys", "", _ROW_3, "[1]\n", rows=True),
]

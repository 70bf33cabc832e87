"""Audit datasets with one error each, made from valid ones, and the place that the error must name."""

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
    """The JSON path that must be named; empty if the error concerns the whole file."""
    old: str
    new: str
    rows: bool = False

    @property
    def text(self) -> str:
        valid = VALID_ROWS if self.rows else VALID
        assert valid.count(self.old) == 1, f"{self.name}: {self.old!r} occurs {valid.count(self.old)} times"
        return valid.replace(self.old, self.new)


_C1, _C2 = "conversations[0]", "conversations[1]"
_F1, _F2, _F3 = (f"{_C1}.facts[{index}]" for index in range(3))
_, _ROW_2, _ROW_3 = VALID_ROWS.splitlines(keepends=True)

BROKEN = [
    Broken("a comma too many", 8, "", '09:01:00"},', '09:01:00"},,'),
    Broken("cut off", 17, "", VALID[VALID.index('likes rain"') :], ""),
    Broken("key twice", 2, "id", '"id": "small"', '"id": "small", "id": "large"'),
    Broken("no dataset id", 1, "", '  "id": "small",\n', ""),
    Broken("a dataset that is a list", 1, "", VALID, "[]\n"),
    Broken("conversations that are none", 1, "", VALID, '{"id": "x", "conversations": []}'),
    Broken("a conversation that is text", 20, _C2, VALID[VALID.index('    {\n      "id": "c2"') :], '    "c2"]}'),
    Broken(
        "a misspelt key",
        17,
        f"{_F3}.categry",
        '"category": "preference"',
        '"categry": "preference"',
    ),
    Broken("an unknown key", 23, f"{_C2}.turns[0].mood", 'Minou."}', 'Minou.", "mood": "fine"}'),
    Broken("no content", 17, _F3, '"content": "User likes rain", ', ""),
    Broken(
        "no facts list",
        20,
        _C2,
        ',\n      "facts": [\n        {"id": "g1", "content": "User\'s cat is called Minou"}\n      ]',
        "",
    ),
    Broken("content that is a number", 8, f"{_C1}.turns[1].content", '"Noted."', "7"),
    Broken("value that is a number", 13, f"{_F1}.value", '"value": "Ghent"', '"value": 9000'),
    Broken("supersedes that is a list", 15, f"{_F2}.supersedes", '"supersedes": "f1"', '"supersedes": ["f1"]'),
    Broken("an unknown role", 8, f"{_C1}.turns[1].role", '"assistant"', '"asistant"'),
    Broken("an unknown category", 12, f"{_F1}.category", '"personal"', '"persona"'),
    Broken(
        "a conversation without turns",
        22,
        f"{_C2}.turns",
        '[\n        {"role": "user", "content": "My cat is called Minou."}\n      ]',
        "[]",
    ),
    Broken("empty turn", 8, f"{_C1}.turns[1].content", '"Noted."', '"  "'),
    Broken("empty fact", 17, f"{_F3}.content", '"User likes rain"', '""'),
    Broken("empty id", 17, f"{_F3}.id", '"f3"', '""'),
    Broken("empty date", 7, f"{_C1}.turns[0].timestamp", '"2024-03-01T09:00:00"', '""'),
    Broken("a fact id twice", 17, f"{_F3}.id", '"f3"', '"f2"'),
    Broken("a conversation id twice", 21, f"{_C2}.id", '"c2"', '"c1"'),
    Broken(
        "superseding nothing",
        15,
        f"{_F2}.supersedes",
        '"supersedes": "f1"',
        '"supersedes": "f9"',
    ),
    Broken(
        "superseding a near name",
        15,
        f"{_F2}.supersedes",
        '"supersedes": "f1"',
        '"supersedes": "F-1"',
    ),
    Broken(
        "superseding itself",
        15,
        f"{_F2}.supersedes",
        '"supersedes": "f1"',
        '"supersedes": "f2"',
    ),
    Broken(
        "superseding in a ring",
        12,
        f"{_F1}.supersedes",
        '"id": "f1"',
        '"id": "f1", "supersedes": "f2"',
    ),
    Broken(
        "superseding elsewhere",
        15,
        f"{_F2}.supersedes",
        '"supersedes": "f1"',
        '"supersedes": "g1"',
    ),
    Broken(
        "superseding what comes later",
        15,
        f"{_F2}.supersedes",
        '"supersedes": "f1"',
        '"supersedes": "f3"',
    ),
    Broken(
        "superseded twice",
        17,
        f"{_F3}.supersedes",
        '"id": "f3"',
        '"id": "f3", "supersedes": "f1"',
    ),
    Broken(
        "superseding from the past",
        15,
        f"{_F2}.timestamp",
        '"timestamp": "2024-04-01T09:00:00", "supersedes"',
        '"timestamp": "2024-02-01T09:00:00", "supersedes"',
    ),
    Broken(
        "superseding another attribute",
        16,
        f"{_F2}.attribute",
        '"attribute": "home town", "value": "Bruges"',
        '"attribute": "employer", "value": "Bruges"',
    ),
    Broken(
        "superseding by the same value",
        16,
        f"{_F2}.value",
        '"value": "Bruges"',
        '"value": "ghent"',
    ),
    Broken(
        "a date in words",
        12,
        f"{_F1}.timestamp",
        '"timestamp": "2024-03-01", ',
        '"timestamp": "March 1st", ',
    ),
    Broken(
        "a day that never was",
        14,
        f"{_F1}.validTo",
        '"validTo": "2024-04-01"',
        '"validTo": "2024-02-30"',
    ),
    Broken(
        "a date that is a number",
        7,
        f"{_C1}.turns[0].timestamp",
        '"2024-03-01T09:00:00"',
        "1709283600",
    ),
    Broken(
        "ending before it begins",
        14,
        f"{_F1}.validTo",
        '"validTo": "2024-04-01"',
        '"validTo": "2024-01-01"',
    ),
    Broken(
        "one zone among none",
        8,
        f"{_C1}.turns[1].timestamp",
        '"2024-03-01T09:01:00"',
        '"2024-03-01T09:01:00Z"',
    ),
    Broken(
        "turns out of order",
        8,
        f"{_C1}.turns[1].timestamp",
        '"2024-03-01T09:01:00"',
        '"2024-02-01T09:01:00"',
    ),
    Broken(
        "a turn that is not there",
        16,
        f"{_F2}.turn",
        '"turn": "t3"',
        '"turn": "t4"',
    ),
    Broken("a turn counted from 0", 14, f"{_F1}.turn", '"turn": 1', '"turn": 0'),
    Broken(
        "a question without an answer",
        17,
        f"{_F3}.question",
        '"id": "f3"',
        '"id": "f3", "question": "What does the user like?"',
    ),
    Broken(
        "both spellings of a key",
        14,
        f"{_F1}.valid_from",
        '"turn": 1',
        '"turn": 1, "valid_from": "2024-03-01"',
    ),
    Broken("lone surrogate", 8, "", '"Noted."', '"\\ud83d"'),
    Broken("a torn last row", 3, "", _ROW_3, _ROW_3[:40], rows=True),
    Broken("a broken row", 2, "", _ROW_2, _ROW_2.replace(":", ";", 1), rows=True),
    Broken("a conversation id twice in rows", 3, "id", '"c3"', '"c1"', rows=True),
    Broken(
        "a row without facts",
        2,
        "",
        _ROW_2,
        '{"id": "c2", "turns": [{"role": "user", "content": "Hi."}]}\n',
        rows=True,
    ),
    Broken("a row that is a list", 3, "", _ROW_3, "[1]\n", rows=True),
]

"""Finds what differs between the settings, data, models and prompts of two runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memorybench.core.records import Record
from memorybench.core.report_sections import Notes, Section, Table, text_column
from memorybench.journal.rows import CODE, LATER_MARKS, Fingerprint, Run, changed_lines, config_text
from memorybench.text.sanitize import shorten

from .registry import suite_of
from .search_limits import DEFAULT_SETTINGS
from .spec import flag_options

SETTINGS = "Settings that differ"
"""The title of the tables of differing settings."""
_NOT_COMPARED = frozenset({"providers", "reuse", "run", "answers_of"})
"""Fields of a spec that are not compared: they name the subjects, or the run whose steps were reused."""
_SELECTING = frozenset({"limit", "sample_seed", "start", "end", "question_ids", "question_types", "failed_in"})
"""Fields of a spec that select questions. If one differs, `chosen`, the ids of the selected questions, is not shown."""
_SEARCH_DEFAULTS = {"top_k": "default_limit", "context_limit": "context_limit"}
"""By field of a spec: the key of its default value in the section `search` of a benchmark's config."""
_UNSET: tuple[Any, ...] = (None, [], {})
_JSON_KEY = re.compile(r'^"(\w+)": "?(.*?)"?$')
_LONGEST = 60
_MOST_LINES = 4
_MOST_SETTINGS = 20


class Setting(Record):
    """A difference between two runs in a setting, data, a version, a model or a prompt."""

    name: str
    first_run: str
    second_run: str
    first: str
    second: str
    first_side: str = ""
    """The name of the first side: its run, or its subject if both sides are of one run."""
    second_side: str = ""


def differing_settings(
    first: Run, second: Run, names: tuple[str, str], run_names: tuple[str, str]
) -> Iterator[Setting]:
    """Yield each difference between two runs, except in the settings of providers other than `names`."""
    sides = names if run_names[0] == run_names[1] else run_names
    runs = {"first_run": run_names[0], "second_run": run_names[1], "first_side": sides[0], "second_side": sides[1]}
    marks, others = _fingerprints(first, names[0]), _fingerprints(second, names[1])
    code, other_code = _code(marks), _code(others)
    for name in sorted(code.keys() | other_code.keys()):
        if code.get(name) != other_code.get(name):
            texts = [found.get(name, "none recorded") for found in (code, other_code)]
            yield Setting(name=name, first=texts[0], second=texts[1], **runs)
    if first.program != second.program:
        yield Setting(name="version", first=first.program, second=second.program, **runs)
    ours, theirs = _spec_fields(first), _spec_fields(second)
    changed = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    for name in changed:
        mark = name.replace("_", " ")  # the fingerprint of a model says more than the field that names the model
        is_shown_below = mark in marks and mark in others and marks[mark].digest != others[mark].digest
        if not is_shown_below and (name != "chosen" or _SELECTING.isdisjoint(changed)):
            texts = [_field_text(run, name, own.get(name)) for run, own in ((first, ours), (second, theirs))]
            yield Setting(name=name, first=texts[0], second=texts[1], **runs)
    for name in sorted(marks.keys() | others.keys()):
        one, other, field = marks.get(name), others.get(name), name.replace(" ", "_")
        if one is None or other is None:
            if field not in changed and name not in LATER_MARKS:
                yield Setting(name=name, first=_presence(one), second=_presence(other), **runs)
            continue
        (one, own), (other, its) = _without_settings(one), _without_settings(other)
        bases = list(dict.fromkeys(subject.partition("(")[0] for subject in names))
        title = bases[0] if name == "provider" and len(bases) == 1 else name
        for key in sorted(own.keys() | its.keys()):
            if own.get(key) != its.get(key):
                unset = [_default_text(run, subject, key) for run, subject in zip((first, second), names, strict=True)]
                texts = [_value_text(found[key]) if key in found else unset[n] for n, found in enumerate((own, its))]
                yield Setting(name=f"{title}: {key}", first=texts[0], second=texts[1], **runs)
        before, after = ([line for line in lines if not line.startswith(CODE)] for lines in changed_lines(one, other))
        if before or after:
            texts = [_lines_text(before, one), _lines_text(after, other)]
            yield Setting(name=field if field in ours else name, first=texts[0], second=texts[1], **runs)


def changed_settings(first: Run, second: Run, subject: str) -> list[str]:
    """Return the names of settings, data, models and prompts that differ between two runs of a subject.

    The version of memorybench is not compared.
    """
    found = differing_settings(first, second, (subject, subject), (first.id, second.id))
    return list(dict.fromkeys(one.name for one in found if one.name != "version"))


def _spec_fields(run: Run) -> dict[str, Any]:
    """Return the fields of a run's spec as JSON. Fields that an older version did not save have their default."""
    spec = suite_of(run).command_of(run).spec
    saved, fields = spec.migrate(run.spec), {}
    for name, field in spec.model_fields.items():
        if not field.exclude and name not in _NOT_COMPARED:
            default = None if field.is_required() else field.get_default(call_default_factory=True)
            fields[name] = json.loads(json.dumps(saved.get(name, default), default=str))
    return fields


def _field_text(run: Run, name: str, value: Any) -> str:
    """Return the value of a spec's field as text; if it was not given, its default, if known."""
    if value not in _UNSET:
        return _value_text(value)
    configs = [_config(mark)[0] for title, mark in run.fingerprints.items() if title.startswith("config of ")]
    defaults = {config.get("search", {}).get(_SEARCH_DEFAULTS.get(name)) for config in configs}
    known = defaults.pop() if len(defaults) == 1 else None
    default = known or flag_options(suite_of(run).command_of(run).spec.model_fields[name]).get("default_text")
    return f"{default} (default)" if default else "not set"


def _fingerprints(run: Run, subject: str) -> dict[str, Fingerprint]:
    """Return the fingerprints of a run without those of other providers. The subject's own is named "provider"."""
    own = f"provider {subject}"
    return {
        "provider" if name == own else name: mark
        for name, mark in run.fingerprints.items()
        if name == own or not name.startswith("provider ")
    }


def _code(marks: Mapping[str, Fingerprint]) -> dict[str, str]:
    """Return, by `code of MODULE`, the digest of that module as recorded in the fingerprints."""
    lines = (line for mark in marks.values() for line in (mark.text or "").splitlines() if line.startswith(CODE))
    return {name: text for name, _, text in (line.rpartition(": ") for line in lines)}


def _config(mark: Fingerprint) -> tuple[dict[str, Any], int]:
    """Return the config at the beginning of a fingerprint's text, and the position of its end; ({}, 0) if none."""
    try:
        config, end = json.JSONDecoder().raw_decode(mark.text or "")
    except ValueError:
        return {}, 0
    return (config, end) if isinstance(config, dict) else ({}, 0)


def _without_settings(mark: Fingerprint) -> tuple[Fingerprint, Mapping[str, Any]]:
    """Split a config's fingerprint: return it without name and `settings`, and the `settings`."""
    config, end = _config(mark)
    if not config:
        return mark, {}
    settings = config.get("settings")
    others = {key: value for key, value in config.items() if key not in ("name", "settings")}
    text = config_text(others) + (mark.text or "")[end:]
    return mark.model_copy(update={"text": text}), settings if isinstance(settings, dict) else {}


def _default_text(run: Run, subject: str, key: str) -> str:
    """Return the default value of a provider's setting that was not given, as text.

    "default" if the run has not recorded the defaults of the provider, "not set" if the setting has none.
    """
    defaults = run.spec.get(DEFAULT_SETTINGS, {})
    if subject not in defaults:
        return "default"
    return f"{_value_text(defaults[subject][key])} (default)" if key in defaults[subject] else "not set"


def _presence(mark: Fingerprint | None) -> str:
    return "none" if mark is None else mark.digest[:12]


def _value_text(value: Any) -> str:
    if value in _UNSET:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(text, _LONGEST)


def _lines_text(lines: Sequence[str], mark: Fingerprint) -> str:
    """Return the lines that differ, shortened; the digest if a line is very long, as in a dataset."""
    texts = (_JSON_KEY.sub(r"\1: \2", line.strip(" ,{}[]")) for line in lines)
    kept = [text for text in texts if any(map(str.isalnum, text)) and not text.startswith("name:")]
    if any(len(line) > 10 * _LONGEST for line in kept):
        return mark.digest[:12]
    more = ["…"] if len(kept) > _MOST_LINES else []
    return "\n".join([*(shorten(line, _LONGEST) for line in kept[:_MOST_LINES]), *more]) or "(no such line)"


def settings_tables(settings: Sequence[Setting]) -> Iterator[Section]:
    by_sides: dict[tuple[str, str], list[Setting]] = {}
    for setting in settings:
        by_sides.setdefault((setting.first_side, setting.second_side), []).append(setting)
    for (first, second), own in by_sides.items():
        rows = tuple((one.name, one.first, one.second) for one in own)
        columns = (text_column("setting"), text_column(first, wrap=True), text_column(second, wrap=True))
        yield Table(SETTINGS, columns, rows[:_MOST_SETTINGS], rows[_MOST_SETTINGS:])
        if len(rows) > _MOST_SETTINGS:
            yield Notes((f"… and {len(rows) - _MOST_SETTINGS} more settings: --format markdown shows all.",))

"""What `describe` shows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from msgspec import Struct, field, to_builtins

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.files import KINDS
from memorybench.catalog.keys import settings_keys
from memorybench.catalog.uses import EVERY_VARIABLE, model_uses
from memorybench.core.errors import BadInput
from memorybench.core.uses import Consent, Uses
from memorybench.files.expressions import parse_expression
from memorybench.files.prompts import load_prompt
from memorybench.files.reading import read_text
from memorybench.models.config import OF_OPENAI
from memorybench.providers.config.extending import SERVICE_SECTIONS
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import needed_variables
from memorybench.providers.config.sections import Local
from memorybench.providers.plugin import read_settings
from memorybench.text.quantities import quantity
from memorybench.text.sanitize import printable
from memorybench.text.spelling import suggestion

from .consent import entry_uses, missing_consent, with_provider
from .datasets import open_dataset
from .environment import environment
from .models import ModelResolver
from .providers import registered_class

if TYPE_CHECKING:
    from memorybench.catalog.entries import Entry, Kind
    from memorybench.catalog.keys import Key
    from memorybench.core.uses import Use
    from memorybench.datasets.config import BenchmarkConfig, Evaluation

    from .models import ResolvedModel

_KINDS: tuple[Kind, ...] = ("provider", "baseline", "benchmark", "extractor", "store", "agent", "model")


class Description(Struct, frozen=True):
    facts: Mapping[str, str]
    """Label and value of each fact, in display order. A value may be empty."""
    uses: Uses
    needs_consent: Sequence[str]
    """The command-line flags without which the entry is refused."""
    settings: Sequence[Key] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The prompt templates of the answering model and the judge, by what each is used for."""

    def plain(self) -> dict[str, Any]:
        """Return the description as JSON-compatible data."""
        shown: dict[str, Any] = {}
        if self.settings:
            shown["settings"] = {key.name: {"value": key.default, "meaning": key.effect} for key in self.settings}
        if self.prompts:
            shown["prompts"] = dict(self.prompts)
        return {**self.facts, **shown, "uses": {**to_builtins(self.uses), "needs_consent": list(self.needs_consent)}}

    def rows(self) -> list[tuple[str, str]]:
        """Return the rows (label, value) of a table, without empty values."""
        titles = {"sql": "SQL", "images": "containers", "other_variables": "other variables"}
        rows = [(name, fact) for name, fact in self.facts.items() if name != "command"]  # shown as a program
        for name in self.uses.__struct_fields__:
            uses: Sequence[Use] = getattr(self.uses, name)
            rows.append((titles.get(name, name), "; ".join(dict.fromkeys(map(_use_text, uses)))))
        return [(name, text) for name, text in (*rows, ("needs", " ".join(self.needs_consent))) if text]

    def setting_rows(self) -> list[tuple[str, str, str]]:
        return [(key.name, key.default, key.effect) for key in self.settings]


def _use_text(use: Use) -> str:
    if use.value == EVERY_VARIABLE:
        return f"all variables to {printable(use.to)}"
    to = f" to {printable(use.to)}" if use.to else ""
    return f"{printable(use.value)}{to} ({printable(use.key)})"


def describe(name: str, folder: Path, extra: Sequence[Path], kind: str | None = None) -> Description:
    """Return the description of an entry or model. If `kind` is None, that of the first entry with this name."""
    catalog = Catalog(folder, extra)
    if _is_model_name(catalog, name, kind):
        model = ModelResolver(catalog, Consent(), need_key=False).resolve(name)
        return Description(_model_facts(model), model_uses(name, "name", environment()), ())
    entry = _find(catalog, name, kind)
    head = {"kind": entry.kind, "what": entry.description, "tags": ", ".join(entry.tags), "from": entry.origin}
    describe_kind = {
        "provider": _provider,
        "benchmark": _benchmark,
        "extractor": _extractor,
        "store": _store,
        "agent": _agent,
        "model": _card,
    }.get(entry.kind)
    facts = describe_kind(catalog, entry) if describe_kind else {"named": f"memorybench eval --providers {name}"}
    uses = Uses()
    for one in with_provider(catalog, entry):
        uses |= entry_uses(catalog, one)
    settings = provider_settings(catalog, entry) if entry.kind == "provider" else ()
    prompts = _prompts(catalog.benchmark(entry.name, environment())) if entry.kind == "benchmark" else {}
    return Description({**head, **facts}, uses, missing_consent(catalog, entry), settings, prompts)


def _is_model_name(catalog: Catalog, name: str, kind: str | None) -> bool:
    """Return whether this is the name of a model without a card, such as gpt-4o."""
    if "(" in name or not (kind == "model" or (kind is None and ("/" in name or OF_OPENAI.fullmatch(name)))):
        return False
    return not any(entry.name == name for one in _KINDS for entry in catalog.entries(one))


def _find(catalog: Catalog, name: str, kind: str | None) -> Entry:
    if "(" in name and kind in (None, "provider"):
        return catalog.chosen("provider", name)
    entries = [entry for one in _KINDS if kind in (None, one) for entry in catalog.entries(one)]
    by_name = {entry.name: entry for entry in reversed(entries)}
    if name not in by_name:
        close = suggestion(name, list(by_name))
        raise catalog.unreadable(name) or BadInput(
            "NAME",
            f'unknown name "{name}"',
            remedy=f"{close} (memorybench list)" if close else "`memorybench list` shows all",
        )
    entry = by_name[name]
    if entry.broken is not None:
        raise entry.broken
    return entry


def provider_settings(catalog: Catalog, entry: Entry) -> list[Key]:
    """Return the settings that an expression such as `name(key=value)` or a config with `extends` can set."""
    config = catalog.provider(entry.name)
    try:
        provider = registered_class(catalog, config)
    except Exception:  # third-party code that cannot be loaded is reported when it is used
        return []
    if provider is not None and provider.settings_model is not None:
        return list(settings_keys(read_settings(provider.settings_model, config)))
    if provider is not None and provider.uses_local_section:
        return list(settings_keys(config.local or Local(), (*provider.unused_settings, "database.schema_file")))
    if config.type == "local":
        return []
    sections = [name for name in SERVICE_SECTIONS if getattr(config, name) is not None]
    others = [name for name in ProviderConfig.model_fields if name not in sections]
    return list(settings_keys(config, (*others, "connection.tls")))


def card_text(name: str, folder: Path, extra: Sequence[Path], kind: str | None = None) -> str:
    """Return the YAML config of an entry with a new name, for the user to save and edit."""
    catalog = Catalog(folder, extra)
    if _is_model_name(catalog, name, kind):
        raise BadInput("NAME", f"model {name} has no YAML config to print", remedy="name an entry that has one")
    entry = _find(catalog, name, kind)
    document = catalog.document(entry.kind, entry.name) if entry.kind in KINDS else None
    if document is None:
        raise BadInput(
            "NAME", f"{entry.kind} {entry.name} has no YAML config to print", remedy="name an entry that has one"
        )
    new_name = f"my-{parse_expression(entry.name).name}"[:64]
    if document.path == str(entry.file) and "extends" not in document.value:  # its file is complete, and has comments
        text = read_text(Path(document.path))
    else:
        whole = {key: value for key, value in document.value.items() if key != "extends" and value not in ("", {})}
        text = yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=120)
    if entry.kind == "provider":
        config = catalog.provider(entry.name)
        provider = registered_class(catalog, config)
        if provider is not None and provider.settings_model is not None:  # with the defaults, too
            text = re.sub(r"^settings:(?:.*\n)(?:[ #].*\n)*", "", text, flags=re.MULTILINE).rstrip() + "\nsettings:\n"
            text += "".join(
                f"  # {key.effect}\n  {key.name}: {key.default}\n"
                for key in settings_keys(read_settings(provider.settings_model, config))
            )
    text = re.sub(r"^name:.*$", f"name: {new_name}", text, count=1, flags=re.MULTILINE)
    file = f"{entry.kind}s/configs/{new_name}.yaml"
    return f"# A copy of {entry.name}. Save it as {file}, edit it, and use it by its name.\n{text}"


def _provider(catalog: Catalog, entry: Entry) -> dict[str, str]:
    config = catalog.provider(entry.name)
    variables = needed_variables(config, environment())
    facts = {
        "type": config.type,
        "adapter": config.adapter or "",
        "API version": config.api_version or "",
        "checked against": config.checked_against or "",
        "address": (config.connection.base_url if config.connection else None) or "",
        "model": config.enhancement_model or "",
        "command": " ".join(config.mcp.command) if config.mcp and config.mcp.command else "",
        "variables": ", ".join(f"{name} ({'set' if is_set else 'NOT set'})" for name, is_set in variables.items()),
    }
    for number, request in enumerate(config.setup, 1):
        facts[f"setup {number}"] = f"{request.method} {request.path}"
    for name, endpoint in config.endpoints or ():
        if endpoint is not None:
            facts[f"endpoint {name}"] = f"{endpoint.method} {endpoint.path}"
    able = [name.removeprefix("supports_").replace("_", " ") for name, yes in config.capabilities if yes]
    return {**facts, "capabilities": ", ".join(able)}


def _extractor(catalog: Catalog, entry: Entry) -> dict[str, str]:
    config = catalog.extractor(entry.name)
    calls = config.url or config.command or config.function or ""
    return {"type": config.type, "asks": calls, "used by": f"memorybench extraction run --extractor {entry.name}"}


def _store(catalog: Catalog, entry: Entry) -> dict[str, str]:
    config = catalog.store(entry.name)
    program = config.mcp.command if config.mcp else config.command.run if config.command else ()
    return {
        "type": config.type,
        "provider": config.provider or "",
        "command": " ".join(program),
        "checked against": config.checked_against,
        "install": config.mcp.install if config.mcp else "",
        "used by": f"memorybench hygiene run --store {entry.name}",
    }


def _agent(catalog: Catalog, entry: Entry) -> dict[str, str]:
    config = catalog.agent(entry.name)
    words = [word if isinstance(word, str) else " ".join(word) for word in config.command]
    return {
        "type": config.type,
        "command": " ".join(words),
        "checked against": config.checked_against,
        "variables": ", ".join(config.pass_env),
        "install": config.install,
        "used by": f"memorybench hygiene run --agent {entry.name} --agent-turn --i-understand-model-cost",
    }


def _card(catalog: Catalog, entry: Entry) -> dict[str, str]:
    # describing a card sends nothing, so that it needs no consent
    return _model_facts(ModelResolver(catalog, Consent(code=True), need_key=False).resolve(entry.name))


def _model_facts(model: ResolvedModel) -> dict[str, str]:
    used_by = f"memorybench eval --answering-model {model.name}"
    address = model.address
    if address is None:
        return {"kind": "model", "name": model.name, "server": "none: a script", "used by": used_by}
    input_price, output_price = model.price(10**6, 0), model.price(0, 10**6)
    is_priced = input_price is not None and output_price is not None
    window = model.listed_window
    keys = [f"{name} ({'set' if environment().get(name) else 'NOT set'})" for name in address.key_variables]
    return {
        "kind": "model",
        "name": model.name,
        "API": address.kind,
        "server": address.base_url,
        "model": address.model,
        "key": " or ".join(keys) or "none",
        "price": f"${input_price:g} in, ${output_price:g} out per million tokens" if is_priced else "? (unknown)",
        "context window": f"{window:,} tokens" if window else "? (unknown)",
        **{name: json.dumps(value, ensure_ascii=False) for name, value in address.card_settings.items()},
        "used by": used_by,
    }


def _gold_facts(config: BenchmarkConfig) -> dict[str, str]:
    """Return what counts as a right answer, apart from the evaluation method."""
    mode = _answer_mode(config)
    credit = "0, 0.5 or 1" if config.evaluation.partial_credit else "0 or 1 (half points count 0)"
    meanings = {
        "any": "any of the gold answers",
        "all": "all of the gold answers",
        "rubric": f"each item of a rubric: {credit}",
    }
    return {"right answer": meanings[mode]} if mode and config.mapping is not None else {}


def _answer_mode(config: BenchmarkConfig) -> str:
    """Return how gold answers are used: `any`, `all` or `rubric`; "" for a benchmark without gold answers."""
    mapping = config.mapping
    if any(kind.rubric for kind in config.question_types) or (mapping is not None and mapping.question_path("rubric")):
        return "rubric"
    if mapping is None:
        return ""
    return mapping.answer_mode or ("any" if mapping.question_path("answer") else "")


def _prompts(config: BenchmarkConfig) -> dict[str, str]:
    """Return the prompts of the answering model and the judge that a run uses by default."""
    answering, judging = config.evaluation.answer_prompt, config.evaluation.judge_prompts
    mapping = config.mapping
    choices = mapping is not None and mapping.question_path("choices")
    prompts = {"answer prompt": answering.default or load_prompt("bench-choice" if choices else "bench-answer")}
    prompts |= {f"answer prompt of {kind}": text for kind, text in answering.by_question_type.items()}
    is_rubric = config.cues is not None or _answer_mode(config) == "rubric"
    prompts["judge prompt"] = judging.default or load_prompt("judge-rubric-item" if is_rubric else "judge-default")
    if not is_rubric:
        names = {kind.name: kind.evaluation_prompt for kind in config.question_types}
        prompts |= {
            f"judge prompt of {kind}": load_prompt(f"judge-{name}")
            for kind, name in names.items()
            if name != "default" and kind not in judging.by_question_type
        }
        rules = mapping.abstention if mapping is not None else None
        if (
            rules is not None
            and (rules.categories or rules.id_pattern)
            and "abstention" not in judging.by_question_type
        ):
            prompts["judge prompt of questions without an answer"] = load_prompt("judge-abstention")
    prompts |= {f"judge prompt of {kind}": text for kind, text in judging.by_question_type.items()}
    return {name: text.strip() for name, text in prompts.items()}


def _prompt_sources(evaluation: Evaluation) -> str:
    """Return who wrote the prompts: the authors of the benchmark, those of the config, or memorybench."""
    judging = evaluation.judge_prompts
    answers = "this config" if evaluation.answer_prompt.default else "memorybench"
    if judging.source == "paper":
        judge = f"the paper ({judging.paper_reference})" if judging.paper_reference else "the paper"
    else:
        judge = "this config" if judging.default or judging.by_question_type else "memorybench"
    return f"answers: {answers}; judge: {judge}"


def _benchmark(catalog: Catalog, entry: Entry) -> dict[str, str]:
    config = catalog.benchmark(entry.name, environment())
    facts = {
        "version": config.version,
        "source": config.source,
        "paper": config.paper,
        "data": f"{config.data.type}: {config.data.path}",
        "licence": config.data.licence,
        "checked against": config.checked_against,
        "scored by": config.evaluation.method,
        "prompts from": _prompt_sources(config.evaluation),
        **_gold_facts(config),
    }
    try:
        dataset = open_dataset(config, catalog)
    except BadInput as missing:
        return {**facts, "questions": f"data is missing: {missing}"}
    kinds = Counter(question.kind for question in dataset.questions)
    histories = len({question.memory for question in dataset.questions})
    return {
        **facts,
        "questions": f"{len(dataset.questions)} on {quantity(histories, 'history', 'histories')}",
        "types": ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()) if kind),
        "evidence": f"counted by {dataset.evidence}",
        "quirks": "; ".join(getattr(dataset, "notes", ())),
        "fingerprint": dataset.fingerprint,
    }

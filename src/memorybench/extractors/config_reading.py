"""From a file to an extractor config, with every check that needs neither network nor keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.files.bodies import BodyTemplate
from memorybench.files.configs import STAND_IN, read_config
from memorybench.files.jsonpaths import Path as JsonPath
from memorybench.files.located import Document
from memorybench.files.names import safe_name
from memorybench.files.yaml_file import load_yaml
from memorybench.http.addresses import check_url
from memorybench.text.spelling import camel

from .command import split_command
from .config import ExtractorConfig
from .reference import parse_prompt

REQUEST_VARIABLES = frozenset({"existingMemory", "conversation", "messages"})
"""What the body of an `http` extractor may name."""

_NEEDED = {
    "http": "url",
    "command": "command",
    "callable": "function",
    "provider": "provider",
    "reference": "prompt",
    "baseline": "baseline",
}
_EFFECTIVE = {
    "http": {"url", "method", "headers", "auth", "body", "output", "insecure", "tls", "timeout"},
    "command": {"command", "timeout"},
    "callable": {"function"},
    "provider": {"provider"},
    "reference": {"model", "prompt"},
    "baseline": {"baseline"},
}
_FOR_ALL = {"name", "display_name", "description", "type"}
_FUNCTION = re.compile(r"(?:[A-Za-z_][\w.]*|.+\.py):[A-Za-z_]\w*")
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def load_extractor_config(path: Path | str, environment: Mapping[str, str] | None = None) -> ExtractorConfig:
    """The extractor config in a YAML file, or the first thing that is wrong with it."""
    return read_extractor(load_yaml(path), environment)


def read_extractor(document: Document, environment: Mapping[str, str] | None = None) -> ExtractorConfig:
    return read_config(document, ExtractorConfig, _check, environment)


def _check(config: ExtractorConfig, document: Document) -> None:
    safe_name(config.name, document.where("name"))
    _check_kind(config, document)
    if config.url is not None:
        _check_request(config, document)
    if config.command is not None:
        split_command(config.command, document.where("command"))
    if config.function is not None and not _FUNCTION.fullmatch(config.function):
        raise BadInput(
            document.where("function"), "names no function", expected="module:function or ./file.py:function"
        )
    if config.provider is not None:
        safe_name(config.provider, document.where("provider"))
    if config.prompt is not None:
        parse_prompt(config.prompt, document.where("prompt"))


def _check_kind(config: ExtractorConfig, document: Document) -> None:
    """Each kind has what it needs, and nothing that would have no effect."""
    for name in sorted(config.model_fields_set - _FOR_ALL - _EFFECTIVE[config.type]):
        raise BadInput(
            document.where(name), f'has no effect where type is "{config.type}"', remedy="remove it, or change type"
        )
    needed = _NEEDED[config.type]
    if getattr(config, needed) is None:
        raise BadInput(document.where(), f'"{camel(needed)}" is missing', expected=f'it where type is "{config.type}"')


def _check_request(config: ExtractorConfig, document: Document) -> None:
    assert config.url is not None
    if STAND_IN not in config.url:
        _check_address(config.url, config.insecure, document.where("url"))
    parse_body(config, document)
    JsonPath.parse(config.output, document.where("output"))
    auth = config.auth
    if auth.type == "none":
        return
    if auth.env_var is None:
        expected = "the name of the environment variable with the key"
        raise BadInput(document.where("auth"), '"envVar" is missing', expected=expected)
    if not _VARIABLE_NAME.fullmatch(auth.env_var):
        # what stands here instead is most likely the key itself: it is not shown
        raise BadInput(
            document.where("auth", "env_var"),
            "is not the name of an environment variable",
            expected="a name such as EXTRACTOR_API_KEY",
            remedy="keep the key itself out of the file",
        )


def parse_body(config: ExtractorConfig, document: Document) -> BodyTemplate:
    """The request body, whose complaints name the line in `document` where it stands."""
    body = Document(document.path, config.body, document.line_of, (*document.within, "body"))
    return BodyTemplate.parse(body, REQUEST_VARIABLES)


def _check_address(url: str, insecure: bool, where: str) -> None:
    try:
        check_url(url, insecure)
    except BadInput as bad:
        remedy = (
            "use https, or say insecure: true if the network is yours" if "plain http" in bad.problem else bad.remedy
        )
        raise BadInput(where, bad.problem, expected=bad.expected, remedy=remedy) from None

"""`memorybench online receive`: stores the spans that agents send by OTLP/HTTP in files, for `online` to read."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import signal
import sys
from pathlib import Path

from memorybench.text.quantities import quantity

from .arguments import add_json, positive
from .view import port_number

ACTION = "receive"
DEFAULT_PORT = 4318


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=(ACTION,), metavar=ACTION, help=argparse.SUPPRESS)
    parser.add_argument(
        "--output", metavar="FOLDER", type=Path, required=True, help="Store spans in this folder (required)"
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=port_number,
        default=DEFAULT_PORT,
        help=f"Listen on this port (default: {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--host",
        metavar="H",
        default="127.0.0.1",
        help="Listen on this address; others than loopback need --token-env (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--token-env", metavar="NAME", help="Require from senders the token in this environment variable"
    )
    parser.add_argument(
        "--max-mb",
        metavar="N",
        type=positive,
        default=1024,
        help="Refuse spans when the folder has N MB (default: 1024)",
    )
    parser.add_argument(
        "--for",
        dest="duration",
        metavar="TIME",
        type=_seconds,
        help="Stop after this time, such as 30s, 10m or 8h (default: at Ctrl-C)",
    )
    add_json(parser, "Print the address and the folder as one JSON document")


def run(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.traces.receiver import LOOPBACK
    from memorybench.wiring.environment import first_variable, redactor

    token = first_variable(args.token_env) if args.token_env else None
    if args.token_env and not token:
        raise BadInput(
            "--token-env", f"the environment variable {args.token_env} is not set", remedy="set it to a secret token"
        )
    if token is not None:
        redactor().add(token)
    if args.host not in LOOPBACK and token is None:
        raise BadInput(
            "--host", f"other machines can reach {args.host}, so a token is required", remedy="add --token-env NAME"
        )
    asyncio.run(_receive(args, token))
    return 0


async def _receive(args: argparse.Namespace, token: str | None) -> None:
    from memorybench.reporting.typed_commands import as_typed
    from memorybench.traces.receiver import Receiver, can_read_protobuf, serve
    from memorybench.traces.span_files import SpanFiles
    from memorybench.wiring.environment import redactor

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    with SpanFiles(args.output, args.max_mb * 2**20) as files:
        receiver = Receiver(files, token, redactor().clean)
        async with serve(receiver, args.host, args.port) as address:
            if args.json:
                print(json.dumps({"url": address, "folder": str(args.output)}), flush=True)
            else:
                print(f"Receiver: {address} (Ctrl-C stops it). Spans: {args.output}/", flush=True)
            if not can_read_protobuf():
                print("Only JSON is accepted; for Protocol Buffers: pip install 'memorybench[otel]'", file=sys.stderr)
            try:
                async with asyncio.timeout(args.duration):
                    await stopped.wait()
            except TimeoutError:
                pass
        spans = quantity(receiver.spans, "span")
        counts = f"{quantity(receiver.batches, 'batch', 'batches')} with {spans} stored, {receiver.refused} refused"
        measure = as_typed(f"memorybench online {shlex.quote(str(args.output))}")
        print(f"memorybench: {counts}; measure them with: {measure}", file=sys.stderr)


def _seconds(text: str) -> float:
    from memorybench.wiring.traces import parse_duration

    try:
        duration = parse_duration(text)
    except OverflowError:
        duration = None
    if not duration:
        raise argparse.ArgumentTypeError(f"invalid time {text!r}; expected a time such as 30s, 10m or 8h")
    return duration.total_seconds()

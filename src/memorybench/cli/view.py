"""Serves pages about runs to a browser on this machine. Nothing is written."""

from __future__ import annotations

import argparse
import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput

from .arguments import add_json, add_results, folders, split_list

if TYPE_CHECKING:
    from starlette.applications import Starlette

DEFAULT_PORT = 8750


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", nargs="*", help="Open the page of this run; of several, their comparison"
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=port_number,
        help=f"Listen on this port (default: {DEFAULT_PORT} or, if it is in use, any)",
    )
    parser.add_argument("--no-browser", action="store_true", help="Print the address without opening a browser")
    parser.add_argument(
        "--host",
        metavar="H",
        default="127.0.0.1",
        help="Listen on this address; others than loopback need --token (default: 127.0.0.1)",
    )
    parser.add_argument("--token", metavar="T", help="Require this secret, of 16 or more letters and digits")
    add_results(parser)
    add_json(parser, "Print the address as one JSON document")


def run(args: argparse.Namespace) -> int:
    _check_installed()
    _check_host(args.host, args.token)
    from memorybench.view.app import create_app
    from memorybench.wiring.environment import redactor

    searched, path = _start(split_list(args.runs), folders(args))
    with _listen(args.host, args.port) as listening:
        port = listening.getsockname()[1]
        host = f"[{args.host}]" if ":" in args.host else args.host
        address = f"http://{host}:{port}{path}"
        app = create_app(searched, host=args.host, token=args.token, redact=redactor().clean)
        if args.json:
            print(json.dumps({"url": address}), flush=True)
        else:
            token = "?token=TOKEN, the one you chose," if args.token else ""
            print(f"Viewer: {address} {f'with {token} ' if token else ''}(Ctrl-C stops it)", flush=True)
        if not args.no_browser:
            _open_browser(address, args.token)
        serve(app, listening)
    return 0


def serve(app: Starlette, listening: socket.socket) -> None:
    """Serve requests on an open socket until Ctrl-C or SIGTERM."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=2
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        print("Viewer stopped.", file=sys.stderr)


def _check_installed() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("jinja2", "starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise BadInput("view", f"not installed: {', '.join(missing)}", remedy="pip install 'memorybench[view]'")


def _check_host(host: str, token: str | None) -> None:
    from memorybench.view.security import LOOPBACK, SHORTEST_TOKEN

    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isalnum()):
        raise BadInput("--token", "invalid token", expected=f"{SHORTEST_TOKEN} or more ASCII letters and digits")
    if host not in LOOPBACK and token is None:
        raise BadInput(
            "--host",
            f"other machines can reach {host}, so a token is required",
            remedy='add --token "$(openssl rand -hex 16)"',
        )


def _start(names: Sequence[str], searched: list[Path]) -> tuple[list[Path], str]:
    """Return the folders to show and the path of the first page."""
    from memorybench.suites.run_list import locate_run
    from memorybench.view.results import run_url

    found = [locate_run(name, searched, thorough=False) for name in names]
    searched = list(dict.fromkeys([*searched, *(folder for _, folder in found)]))
    if not found:
        return searched, "/"
    places = [(searched.index(folder), run_id) for run_id, folder in found]
    if len(places) == 1:
        return searched, run_url(*places[0])
    return searched, "/compare?" + "&".join(f"side={place}/{run_id}" for place, run_id in places)


def _listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens on the port; None: the default port or, if that is in use, any free one."""
    for number in (DEFAULT_PORT, 0) if port is None else (port,):
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, number), family=family, backlog=128)
        except OSError as error:
            problem = error
    where = "--port" if port is not None else "--host"
    raise BadInput(
        where, f"cannot listen on {host} ({problem.strerror})", remedy=f"choose another {where[2:]}"
    ) from problem


def _open_browser(address: str, token: str | None) -> None:
    import webbrowser

    query = f"{'&' if '?' in address else '?'}token={token}" if token else ""
    webbrowser.open(address + query)


def port_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"invalid port {text!r}; expected 0 to 65535 (0: any free port)")
    return int(text)

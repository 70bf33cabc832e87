"""Writes a run into one file that others can open and check."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import stat
import sys
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.reporting.typed_commands import as_typed
from memorybench.suites.stored_run import read_run
from memorybench.text.sanitize import printable

from .arguments import add_json, add_results, folders


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="Bundle this run, FOLDER/RUN or `latest`")
    parser.add_argument("--output", metavar="FILE", type=Path, help="Write this file (default: RUN.mbz)")
    parser.add_argument("--public", action="store_true", help="Leave out texts of questions, memories and replies")
    parser.add_argument(
        "--sign", metavar="KEY", type=Path, help="Sign with this private key, a file of `memorybench keygen`"
    )
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.bundles.making import make_bundle

    sign = None
    if args.sign is not None:
        from memorybench.bundles.signing import PrivateKey, check_installed

        check_installed()
        sign = PrivateKey.read(args.sign).sign
        _warn_if_open(args.sign)
    with read_run([args.run_id], folders(args)) as stored:
        run_id = stored.run.id
        output = args.output or Path(f"{run_id}.mbz")
        _check_replaceable(output)
        manifest = make_bundle(stored, output, public=args.public, sign=sign)
    size = output.stat().st_size
    if args.json:
        print(json.dumps({"run_id": run_id, "file": str(output), "bytes": size, "root": manifest.root}, indent=2))
    else:
        print(f"Run {run_id} is in {output} ({size:,} bytes), root {manifest.root}.")
        print(as_typed(f"Check it with: memorybench verify {shlex.quote(str(output))}"))
    return 0


def _warn_if_open(key: Path) -> None:
    """Print a warning if other users of this machine have access to a private key. Windows has no such modes."""
    mode = stat.S_IMODE(key.stat().st_mode)
    if os.name != "nt" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        print(
            f"memorybench: {printable(str(key))}: other users have access to this private key (mode {mode:04o});"
            " expected mode 0600; run `chmod 600` on the file",
            file=sys.stderr,
        )


def _check_replaceable(output: Path) -> None:
    """Raise BadInput if `output` is a file that is not a bundle, such as a key."""
    try:
        if not output.is_file():
            return
        with output.open("rb") as file:
            is_bundle = file.read(2) == b"PK"  # as every zip file begins
    except OSError as error:
        raise BadInput(
            str(output), f"the file cannot be replaced ({error.strerror})", remedy="name another file"
        ) from error
    if not is_bundle:
        raise BadInput(str(output), "the file exists and is not a bundle", remedy="name another file with --output")

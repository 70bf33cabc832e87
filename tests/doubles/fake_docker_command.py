"""The command that FakeDocker installs as `docker`. It imports next to nothing, because it is started often.

DOCKER_STATE is a folder: `calls` has a JSON line for each command, PROJECT.container the process id of each container.
DOCKER_FAULT is what goes wrong: no plugin, no engine, port, image, strange, pulls for ever, dies, never healthy, stuck.
"""

from __future__ import annotations

import json
import os
import sys

LOGGED = ["Attaching to memory_1", *(f"memory_1 | line {n}" for n in range(20)), "memory_1 | \x1b[31mno database for "]
COMPLAINTS = {
    "port": "Error starting userland proxy: listen tcp4 127.0.0.1:9999: bind: address already in use",
    "image": "memory Pulling\nError response from daemon: pull access denied for nobody/nothing",
    "strange": "memory Creating\nError response from daemon: the moon is full",
}
CONTAINER = ".container"


def main(called: str, arguments: list[str]) -> None:
    state, fault = os.environ["DOCKER_STATE"], os.environ.get("DOCKER_FAULT", "")
    through_plugin = arguments[0] == "compose"
    of_compose = through_plugin or called.endswith("docker-compose")
    options, [command, *rest] = split(arguments[1:] if through_plugin else arguments)
    with open(f"{state}/calls", "a") as ledger:
        call = {"command": command, "arguments": rest, **options, "environment": dict(os.environ)}
        ledger.write(f"{json.dumps(call)}\n")
    if fault == "no plugin" and through_plugin:
        sys.exit("docker: 'compose' is not a docker command.")
    if fault == "no engine" and command != "config" and not (of_compose and command == "version"):
        sys.exit("Cannot connect to the Docker daemon at unix:///nowhere. Is the docker daemon running?")
    container = f"{state}/{options.get('-p', '')}{CONTAINER}"
    if command == "config":
        with open(options["-f"]) as file:
            print(*(line.strip(" :\n") for line in file if line[:2] == "  " and line[2] not in " #"))
    elif command == "up":
        up(fault, container)
    elif command == "down":
        down(fault, container)
    elif command == "ps" and rest[0] == "--services":
        if os.path.exists(container) and fault != "dies" and "status=running" in rest:
            print("memory")
    elif command == "ps":
        print(*(name.removesuffix(CONTAINER) for name in os.listdir(state) if name.endswith(CONTAINER)))
    elif command == "logs":
        print("\n".join(LOGGED) + os.environ.get("DOCKER_SECRET", ""))


def split(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options in front of the command, and the rest."""
    options = {}
    while arguments[0] in ("-p", "-f"):
        options[arguments[0]] = arguments[1]
        arguments = arguments[2:]
    return options, arguments


def up(fault: str, container: str) -> None:
    if fault in COMPLAINTS:
        sys.exit(COMPLAINTS[fault])
    pid = 0 if fault in ("pulls for ever", "dies", "never healthy") else start(f"{container}.db")
    with open(f"{container}.new", "w") as file:
        file.write(str(pid))
    os.replace(f"{container}.new", container)  # a killed command leaves no half-written file
    if fault == "pulls for ever":
        import time

        time.sleep(3600)


def start(data: str) -> int:
    import subprocess

    server = [
        sys.executable,
        os.environ["DOCKER_SERVER"],
        "--data",
        data,
        "--port",
        os.environ["REFERENCE_MEMORY_PORT"],
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(server, start_new_session=True, **quiet).pid


def down(fault: str, container: str) -> None:
    if not os.path.exists(container):
        return
    if fault == "stuck":
        sys.exit("error while removing network: has active endpoints")
    with open(container) as file:
        pid = int(file.read())
    if pid:
        import signal

        os.kill(pid, signal.SIGKILL)
        wait_until_silent(int(os.environ["REFERENCE_MEMORY_PORT"]))
    folder, name = os.path.split(container)
    for made in os.listdir(folder):
        if made.startswith(name):
            os.unlink(f"{folder}/{made}")


def wait_until_silent(port: int) -> None:
    import socket

    while True:
        with socket.socket() as door:
            if door.connect_ex(("127.0.0.1", port)) != 0:
                return


if __name__ == "__main__":
    main(sys.argv[0], sys.argv[1:])

"""A memory in forty lines, as the `command` binding drives it: python command_example.py FILE.

Besides, it misbehaves on demand: the contents `!die`, `!hang`, `!garble`, `!array`, `!error`, `!both` and
`!true` do what they say.
"""

import json
import sys
import time
from pathlib import Path


def answer(request: dict, held: dict) -> dict:
    facts = held.setdefault(request["user"], {})
    match request["op"]:
        case "remember":
            content = request["fact"]["content"]
            if "secret" in content:
                return {"refused": "no secrets here"}
            if content == "!error":
                return {"error": "the disk is full"}
            if content == "!lacking":
                return {"lacking": "a disk"}
            if content == "!both":
                return {"ok": None, "error": "the disk is full"}
            if content == "!true":
                return {"ok": True}
            held["next"] = held.get("next", 0) + 1
            facts[str(held["next"])] = {"content": content, "category": request["fact"]["category"]}
            return {"ok": {"id": held["next"]}}
        case "update" if request["id"] in facts:
            facts[request["id"]]["content"] = request["content"]
            return {"ok": request["id"]}
        case "forget" if request["id"] in facts:
            del facts[request["id"]]
            return {"ok": None}
        case "list":
            return {"ok": [{"id": id, **fact} for id, fact in facts.items()]}
        case "recall":
            asked = set(request["query"].lower().strip("?").split())
            shared = {id: len(asked & set(fact["content"].lower().split())) for id, fact in facts.items()}
            best = sorted((id for id in facts if shared[id]), key=lambda id: -shared[id])[: request["limit"]]
            return {"ok": [{"id": id, **facts[id]} for id in best]}
        case "curate":
            return {"lacking": "a curator"}
        case "history":
            return {"lacking": "a history"}
    return {"error": f"no fact {request.get('id')}"}


def main() -> None:
    file = Path(sys.argv[1])
    held = json.loads(file.read_text()) if file.exists() else {}
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("fact", {}).get("content"):
            case "!die":
                sys.exit(3)
            case "!hang":
                time.sleep(3600)
            case "!garble":
                print("INFO: no JSON", flush=True)
                continue
            case "!array":
                print("[1, 2]", flush=True)
                continue
        said = answer(request, held)
        file.write_text(json.dumps(held))
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()

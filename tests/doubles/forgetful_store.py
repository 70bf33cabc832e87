"""A command store over SQLite with one fault of deletion: `python forgetful_store.py FOLDER FAULT`."""

from __future__ import annotations

import binascii
import gzip
import io
import json
import lzma
import os
import random
import re
import signal
import sqlite3
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

FAULTS = (
    "none", "log", "free-pages", "write-ahead-log", "zlib-backup", "gzip-in-home", "moved-copy", "tombstone",
    "returns-on-restart", "returns-on-curation", "returns-on-refeed", "refuses-refeed", "forgets-all", "history",
    "summary", "for-others", "deaf", "old-id", "lzma", "deflate", "zip-in-zip", "zip-after-header", "many-streams",
    "big-gzip", "encrypted-zip", "encrypted", "zstd", "link-to-folder", "stops-the-run",
    "temporary-file", "gzip-in-temporary-folder", "search-cache", "xor", "xor-in-row", "xor-in-gzip", "xor-utf16",
    "encrypted-tombstone", "parquet", "leveldb", "snappy",
    "version-before", "copy-before-curation", "link-target", "attribute", "attribute-of-folder",
    "uuencoded", "large-temporary-file", "deletes-for-others", "refuses-second-deletion", "readable-after-restart",
    "hangs-on-refeed", "new-ids",
)  # fmt: skip


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("all", content)
    return packed.getvalue()


def xored(octets: bytes) -> bytes:
    return bytes(octet ^ 0x5A for octet in octets)


class Store:
    def __init__(self, folder: Path, fault: str) -> None:
        self.folder, self.fault, self.copies = folder, fault, b""
        self.searches: dict[tuple[str, str], list[dict[str, str]]] = {}
        self.deleted: set[str] = set()
        self.db = sqlite3.connect(folder / "facts.db", isolation_level=None)
        if fault == "write-ahead-log":
            self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA secure_delete = {'OFF' if fault == 'free-pages' else 'ON'}")
        self.db.execute("CREATE TABLE IF NOT EXISTS facts (id INTEGER PRIMARY KEY AUTOINCREMENT, user, content, gone)")
        self.db.execute("CREATE TABLE IF NOT EXISTS earlier (id, content)")
        self.db.execute("CREATE TABLE IF NOT EXISTS history (fact, user, content)")
        if fault == "returns-on-restart":
            self.revive()
        if fault == "stops-the-run":
            with Path(sys.argv[3]).open("a") as file:
                file.write("opened\n")

    def openings(self) -> int:
        return len(Path(sys.argv[3]).read_text().splitlines())

    def revive(self) -> None:
        self.db.execute("UPDATE facts SET gone = 0")

    def rows(self, user: str) -> list[tuple[int, str]]:
        query = "SELECT id, content FROM facts WHERE user = ? AND NOT gone ORDER BY id"
        return self.db.execute(query, (user,)).fetchall()

    def remember(self, user: str, fact: dict[str, Any]) -> str:
        content = fact["content"]
        self.searches.clear()
        if self.fault == "hangs-on-refeed" and (self.folder / "denied").exists():
            signal.pause()
        if self.fault == "refuses-refeed" and (self.folder / "denied").exists():
            raise ValueError("was deleted")
        if self.fault == "returns-on-refeed":
            self.revive()
        found = self.db.execute("SELECT id FROM facts WHERE (user, content, gone) = (?, ?, 0)", (user, content))
        if row := found.fetchone():
            return str(row[0])
        self.keep_copy(content)
        return str(
            self.db.execute("INSERT INTO facts (user, content, gone) VALUES (?, ?, 0)", (user, content)).lastrowid
        )

    def keep_copy(self, content: str) -> None:
        match self.fault:
            case "log":
                with (self.folder / "server.log").open("a") as log:
                    log.write(f"INFO stored: {content}\n")
            case "zlib-backup":
                with (self.folder / "backup.dat").open("ab") as file:
                    file.write(b"\x00header\x00" + zlib.compress(content.encode()))
            case "gzip-in-home":
                home = self.folder / ".home" / ".cache"
                home.mkdir(parents=True, exist_ok=True)
                with (home / "facts.gz").open("ab") as file:
                    file.write(gzip.compress(content.encode()))
            case "lzma":
                self.append("backup.lzma", lzma.compress(content.encode(), format=lzma.FORMAT_ALONE))
            case "deflate":
                packer = zlib.compressobj(wbits=-15)
                self.append("backup.bin", packer.compress(content.encode()) + packer.flush())
            case "zip-in-zip" | "zip-after-header" | "encrypted-zip":
                self.zip_copy(content)
            case "many-streams":
                if not (self.folder / "cache.bin").exists():
                    self.append("cache.bin", b"".join(zlib.compress(b"filler %d" % n) for n in range(2_100)))
                self.append("cache.bin", zlib.compress(content.encode()))
            case "big-gzip":
                if not (self.folder / "backup.gz").exists():
                    self.append("backup.gz", gzip.compress(bytes(9 * 2**20) + content.encode()))
            case "encrypted":
                key = random.Random(content)
                self.append("cache.bin", bytes(octet ^ key.randrange(256) for octet in content.encode()))
            case "xor":
                self.append("cache.bin", b"\x01\x02" + xored(content.encode()))
            case "xor-utf16":
                self.append("cache.bin", xored(content.encode("utf-16-le")))
            case "xor-in-gzip":
                self.append("cache.gz", gzip.compress(xored(content.encode())))
            case "xor-in-row":
                self.db.execute("INSERT INTO earlier VALUES (NULL, ?)", (xored(content.encode()),))
            case "parquet":
                self.append("facts.parquet", b"PAR1" + xored(content.encode()[::-1]) + b"PAR1")
            case "leveldb":
                self.append("000005.ldb", xored(content.encode()[::-1]) + bytes.fromhex("57fb808b247547db"))
            case "snappy":
                self.append("facts.sz", b"\xff\x06\x00\x00sNaPpY" + xored(content.encode()[::-1]))
            case "zstd":
                self.append("backup.zst", b"\x28\xb5\x2f\xfd" + xored(content.encode()[::-1]))
            case "link-to-folder":
                elsewhere = Path(sys.argv[3])
                elsewhere.mkdir(exist_ok=True)
                if not (self.folder / "archive").is_symlink():
                    (self.folder / "archive").symlink_to(elsewhere)
                (elsewhere / "notes.txt").write_text(content)
            case "link-target":
                (self.folder / f"link{len(list(self.folder.iterdir()))}").symlink_to(content)
            case "attribute" if sys.platform == "linux":
                os.setxattr(
                    self.folder / "facts.db",
                    f"user.fact{zlib.crc32(content.encode())}",
                    zlib.compress(content.encode()),
                )
            case "attribute-of-folder" if sys.platform == "linux":
                os.setxattr(self.folder, f"user.fact{zlib.crc32(content.encode())}", content.encode())
            case "uuencoded":
                octets = content.encode()
                lines = [binascii.b2a_uu(octets[at : at + 45]) for at in range(0, len(octets), 45)]
                self.append("cache.uu", b"begin 644 fact\n" + b"".join(lines) + b"`\nend\n")
            case "temporary-file":
                with Path(f"{sys.argv[3]}.txt").open("a") as file:
                    file.write(content + "\n")
            case "large-temporary-file":
                with Path(f"{sys.argv[3]}.bin").open("wb") as large:
                    large.seek(32 * 2**20)  # a hole, which takes no space
                    large.write(content.encode())
            case "gzip-in-temporary-folder":
                Path(sys.argv[3]).mkdir(exist_ok=True)
                with gzip.open(Path(sys.argv[3], "cache.bin"), "ab") as packed:
                    packed.write(content.encode())
            case "moved-copy":
                with (self.folder.parent / "elsewhere.txt").open("a") as file:
                    file.write(content + "\n")

    def append(self, name: str, octets: bytes) -> None:
        with (self.folder / name).open("ab") as file:
            file.write(octets)

    def zip_copy(self, content: str) -> None:
        """Write an archive of all facts so far."""
        self.copies += content.encode()
        packed = zipped(self.copies)
        if self.fault == "zip-in-zip":
            packed = zipped(packed)
        if self.fault == "zip-after-header":
            packed = b"HEADER--" + packed
        if self.fault == "encrypted-zip":  # with the flag that says so
            at = packed.index(b"PK\x01\x02")
            packed = packed[:6] + b"\x01" + packed[7 : at + 8] + b"\x01" + packed[at + 9 :]
        (self.folder / "backup.zip").write_bytes(packed)

    def update(self, user: str, id: str, content: str) -> str:
        (before,) = self.db.execute("SELECT content FROM facts WHERE id = ?", (id,)).fetchone()
        self.db.execute("INSERT INTO history VALUES (?, ?, ?)", (id, user, before))
        self.keep_copy(content)
        if self.fault == "old-id":
            self.db.execute("INSERT INTO earlier VALUES (?, ?)", (id, before))
            self.db.execute(
                "UPDATE facts SET id = (SELECT max(id) + 1 FROM facts), content = ? WHERE id = ?", (content, id)
            )
            return str(self.db.execute("SELECT max(id) FROM facts").fetchone()[0])
        self.db.execute("UPDATE facts SET content = ? WHERE id = ?", (content, id))
        return id

    def keep_version(self, name: str) -> None:
        """Overwrite a copy with all facts as they are now."""
        texts = [content for (content,) in self.db.execute("SELECT content FROM facts")]
        (self.folder / name).write_text(json.dumps(texts))

    def forget(self, user: str, id: str) -> None:
        if self.fault == "version-before":
            self.keep_version("facts.bak")
        if self.fault != "history":
            self.db.execute("DELETE FROM history WHERE fact = ?", (id,))
        if self.fault in ("tombstone", "returns-on-restart", "returns-on-curation", "returns-on-refeed", "for-others"):
            self.db.execute("UPDATE facts SET gone = 1 WHERE id = ?", (id,))
            return
        if self.fault == "summary":
            texts = "; ".join(content for _, content in self.rows(user))
            self.db.execute("INSERT INTO facts (user, content, gone) VALUES (?, ?, 0)", (user, f"Summary: {texts}"))
        if self.fault == "forgets-all":
            self.db.execute("DELETE FROM facts")
        if self.fault == "deletes-for-others":
            self.db.execute("DELETE FROM facts WHERE user != ?", (user,))
        if self.fault in ("refuses-refeed", "hangs-on-refeed"):
            (self.folder / "denied").touch()
        if self.fault == "refuses-second-deletion":
            (text,) = self.db.execute("SELECT content FROM facts WHERE id = ?", (id,)).fetchone()
            mark = self.folder / f"deleted-{zlib.crc32(text.encode())}"
            if mark.exists():
                raise ValueError("was deleted before")
            mark.touch()
        self.deleted.add(id)
        if self.fault == "readable-after-restart":
            self.db.execute("UPDATE facts SET gone = 1 WHERE id = ?", (id,))
            return
        if self.fault == "encrypted-tombstone":
            (self.folder / "deleted.bin").write_bytes(random.Random(7).randbytes(40))
        if self.fault == "stops-the-run":
            (self.folder / "deleted").touch()
        self.db.execute("DELETE FROM facts WHERE id = ?", (id,))
        if self.fault not in ("free-pages", "write-ahead-log"):
            self.db.execute("VACUUM")

    def recall(self, user: str, query: str, limit: int) -> list[dict[str, str]]:
        if self.fault == "deaf":
            return []
        if self.fault == "search-cache" and (user, query) in self.searches:
            return self.searches[user, query]
        words = set(re.findall(r"\w{3,}", query.lower()))
        hits = [(len(words & set(re.findall(r"\w{3,}", text.lower()))), id, text) for id, text in self.visible(user)]
        found = [{"id": str(id), "content": text} for n, id, text in sorted(hits, reverse=True) if n][:limit]
        self.searches[user, query] = found
        return found

    def visible(self, user: str) -> list[tuple[int, str]]:
        if self.fault == "for-others" and user.endswith("other"):
            return self.db.execute("SELECT id, content FROM facts WHERE gone OR user = ?", (user,)).fetchall()
        return self.rows(user)

    def all(self, user: str) -> list[dict[str, str]]:
        rows = [] if self.fault == "deaf" else self.visible(user)
        return [{"id": str(id), "content": content} for id, content in rows]

    def get(self, user: str, id: str) -> dict[str, str] | None:
        if row := self.db.execute("SELECT content FROM earlier WHERE id = ?", (id,)).fetchone():
            return {"id": id, "content": row[0]}
        if self.fault == "readable-after-restart" and id not in self.deleted:
            row = self.db.execute("SELECT content FROM facts WHERE (user, id) = (?, ?)", (user, id)).fetchone()
            return row and {"id": id, "content": row[0]}
        return next((fact for fact in self.all(user) if fact["id"] == id), None)

    def history(self, user: str) -> list[str]:
        return [text for (text,) in self.db.execute("SELECT content FROM history WHERE user = ?", (user,))]

    def curate(self, user: str, apply: bool) -> dict[str, Any]:
        if self.fault in ("version-before", "copy-before-curation"):
            self.keep_version("facts.bak" if self.fault == "version-before" else "facts.before")
        if self.fault == "returns-on-curation" and apply:
            self.revive()
        if self.fault == "new-ids" and apply and self.deleted:  # no fault: it rewrites what is left
            self.db.execute("UPDATE facts SET id = id + 1000")
        if self.fault == "stops-the-run" and (self.folder / "deleted").exists() and self.openings() == 2:
            os.kill(os.getppid(), signal.SIGTERM)  # the next thing that the run does is to search the files
        return {"proposals": []}


def main() -> None:
    store = Store(Path(sys.argv[1]), sys.argv[2])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            name = request.pop("op")
            answer = {"ok": getattr(store, {"list": "all"}.get(name, name))(**request)}
        except ValueError as error:
            answer = {"refused": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

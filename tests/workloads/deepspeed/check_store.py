# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""A bucket as a store, by the real google-cloud-storage, from a real emulator, through a network that misbehaves.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/deepspeed -p 'check_*.py'
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import threading
import time
import traceback
import typing as t
import unittest
from pathlib import Path
from unittest import mock

from bucket import BUCKET, Fault, Service
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kit.pretraining import attempts, crc32c, gcs, store
from kit.pretraining.attempts import StoreError
from kit.pretraining.store import Store, Stored, open_store

SMALL = bytes(range(256)) * 1000
LARGE = SMALL * 40  # 10 MB: more than the library sends in one request
DEADLINE = 3.0
SECRET = "CaNaRy5ecret"


def setUpModule() -> None:
    global service  # noqa: PLW0603
    service = Service()
    unittest.addModuleCleanup(service.end)
    changed = mock.patch.dict(os.environ, {gcs.EMULATOR: service.proxy.url})
    changed.start()
    unittest.addModuleCleanup(changed.stop)
    # As large an upload as in reality has several parts.
    smaller = mock.patch.object(gcs, "CHUNK", 4 << 20)
    smaller.start()
    unittest.addModuleCleanup(smaller.stop)


service: Service


class Case(unittest.TestCase):
    """A prefix of its own, and files on this side."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.store = self.open()
        service.clear()

    def open(self, prefix: str | None = None, deadline: float = DEADLINE) -> Store:
        return open_store(f"gs://{BUCKET}/{prefix or self.id()}", deadline=deadline)

    def file(self, content: bytes, name: str = "local") -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def get(self, name: str = "x", content: bytes = SMALL, store: Store | None = None) -> bool:
        digest = hashlib.sha256(content).hexdigest()
        return (store or self.store).get(name, self.folder / "got", size=len(content), sha256=digest)

    def spoil(self, kind: str, times: int = 1, method: str = "GET", part: str = "/") -> None:
        service.proxy.faults = [Fault(kind, method, times, part)]
        service.proxy.asked = []

    def refused(self, reason: str, words: str, work: t.Callable[..., t.Any], *arguments: t.Any) -> StoreError:
        with self.assertRaisesRegex(StoreError, words) as caught:
            work(*arguments)
        self.assertEqual(caught.exception.reason, reason, str(caught.exception))
        return caught.exception

    def asked(self, *parts: str) -> int:
        return sum(all(part in line for part in parts) for line in service.proxy.asked)


class Objects(Case):
    def test_what_is_put_is_there_and_comes_back(self) -> None:
        for name, content in (("a/small", SMALL), ("a/large", LARGE), ("b", b"")):
            self.store.put(self.file(content), name)
            self.assertTrue(self.get(name, content))
            self.assertEqual((self.folder / "got").read_bytes(), content)
            self.assertEqual(self.store.read(name), content)
        self.store.write("c", b"xyz")
        sums = {name: checksum(content) for name, content in (("s", SMALL), ("l", LARGE), ("c", b"xyz"), ("b", b""))}
        large, small = Stored("a/large", len(LARGE), sums["l"]), Stored("a/small", len(SMALL), sums["s"])
        self.assertEqual(self.store.list(), [large, small, Stored("b", 0, sums["b"]), Stored("c", 3, sums["c"])])
        self.assertEqual(self.store.list("a/l"), [large])
        self.assertEqual(self.store.list("none"), [])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["got", "local"])
        self.assertEqual(self.store.retries, 0)

    def test_a_bucket_may_be_used_without_a_prefix(self) -> None:
        whole = open_store(f"gs://{BUCKET}", deadline=DEADLINE)
        whole.write(f"{self.id()}/x", b"1")
        self.assertEqual([each.name for each in self.store.list()], ["x"])
        self.assertIn(f"{self.id()}/x", [each.name for each in whole.list()])

    def test_a_whole_file_is_not_fetched_again(self) -> None:
        self.store.write("x", SMALL)
        service.clear()
        self.assertEqual([self.get(), self.get()], [True, False])
        self.assertEqual(len(service.proxy.asked), 1)

    def test_an_object_is_removed_once_or_twice(self) -> None:
        self.store.write("x", b"1")
        self.store.delete("x")
        self.store.delete("x")
        self.assertEqual(self.store.list(), [])

    def test_an_object_is_written_once(self) -> None:
        for content, other in ((SMALL, SMALL[:-1] + b"!"), (LARGE, LARGE[:-1] + b"!")):
            name = str(len(content))
            self.store.put(self.file(content), name)
            service.clear()
            self.store.put(self.file(content), name)
            self.assertEqual(self.asked("POST"), 0)  # nothing is sent again
            error = self.refused("conflict", "exists with other content", self.store.put, self.file(other), name)
            self.assertIn(f"{checksum(content)}, to be sent {len(other)} bytes of CRC32C {checksum(other)}", str(error))
            self.assertEqual(self.store.read(name), content)

    def test_a_race_is_lost_by_the_second(self) -> None:
        """Both found nothing; the precondition decides."""
        slower = self.open()
        stated = slower._stated  # type: ignore[attr-defined]

        def beaten(name: str, clock: attempts.Clock) -> t.Any:
            found = stated(name, clock)
            if not self.asked("POST"):
                self.store.write("x", SMALL)
            return found

        for content, fails in ((SMALL, False), (b"other", True)):
            service.clear()
            self.store.delete("x")
            with mock.patch.object(slower, "_stated", beaten):
                if fails:
                    self.refused("conflict", "exists with other content", slower.write, "x", content)
                else:
                    slower.write("x", content)
            self.assertEqual(self.asked("POST", "ifGenerationMatch=0"), 2)
            self.assertEqual(self.store.read("x"), SMALL)

    def test_what_is_not_there_is_told(self) -> None:
        self.refused("missing", "/none: the download failed after 1 attempt .*no such object", self.store.read, "none")
        self.refused("missing", "/none: the download failed after 1 attempt", self.get, "none")
        other = open_store("gs://no-such-bucket/x", deadline=DEADLINE)
        self.refused("missing", "no such object or bucket", other.read, "x")
        self.refused("missing", "no such object or bucket", other.list)
        self.refused("missing", "no such object or bucket", other.write, "x", b"")

    def test_an_object_of_another_size_or_content_is_never_taken(self) -> None:
        self.store.write("x", SMALL)
        self.file(b"before", "got")
        for content, words in ((SMALL[:-1], "more than the expected"), (SMALL + b"!", "256000 bytes, expected 256001")):
            self.refused("damaged", f"after 3 attempts .*arrives damaged: {words}", self.get, "x", content)
        self.refused("damaged", "arrives damaged: SHA-256", self.get, "x", SMALL[:-1] + b"!")
        self.assertEqual((self.folder / "got").read_bytes(), b"before")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["got"])

    def test_what_is_read_into_memory_is_limited(self) -> None:
        self.store.write("x", b"12345")
        with mock.patch.object(store, "MAX_READ", 5):
            self.assertEqual(self.store.read("x"), b"12345")
        with mock.patch.object(store, "MAX_READ", 4):
            self.refused("damaged", "more than the expected 4 bytes", self.store.read, "x")

    def test_a_listing_has_pages_and_a_limit(self) -> None:
        for number in range(5):
            self.store.write(str(number), b"")
        with mock.patch.object(store, "MAX_LISTED", 4):
            self.refused("local", "more than 4 objects are there", self.store.list)

    def test_several_threads_at_once(self) -> None:
        contents = {f"{number}": SMALL[number:] for number in range(8)}
        errors: list[Exception] = []

        def work(name: str) -> None:
            try:
                self.store.put(self.file(contents[name], name), name)
                digest = hashlib.sha256(contents[name]).hexdigest()
                self.store.get(name, self.folder / f"got{name}", size=len(contents[name]), sha256=digest)
            except Exception as error:
                errors.append(error)

        service.proxy.faults = [Fault("503", "POST", 3), Fault("503", "GET", 3)]
        threads = [threading.Thread(target=work, args=(name,)) for name in contents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(self.store.retries, 6)


class Downloads(Case):
    """What passes is survived and counted; what does not is told with object, attempts and deadline."""

    def setUp(self) -> None:
        super().setUp()
        self.store.write("x", SMALL)
        self.store = self.open()

    def test_what_passes_is_survived_and_counted(self) -> None:
        for kind, times in (("503", 3), ("429", 2), ("500", 1), ("cut", 1), ("flip", 1), ("flip-unsigned", 2)):
            with self.subTest(kind):
                store = self.open()
                (self.folder / "got").unlink(missing_ok=True)
                self.spoil(kind, times)
                self.assertTrue(self.get(store=store))
                self.assertEqual((store.retries, len(service.proxy.asked)), (times, times + 1))
                self.assertEqual((self.folder / "got").read_bytes(), SMALL)

    def test_a_stall_is_given_up_and_asked_again(self) -> None:
        self.spoil("stall")
        begun = time.monotonic()
        self.assertTrue(self.get())
        self.assertEqual(self.store.retries, 1)
        self.assertLess(time.monotonic() - begun, DEADLINE)

    def test_each_attempt_asks_for_the_whole_object(self) -> None:
        """The rest as a part would come without a checksum: the second fault would pass."""
        service.proxy.faults = [Fault("cut"), Fault("flip")]
        self.assertTrue(self.get())
        self.assertEqual(self.store.retries, 2)
        self.assertEqual((self.folder / "got").read_bytes(), SMALL)
        self.assertEqual(self.asked("alt=media"), 3)

    def test_what_lasts_is_told_at_the_deadline(self) -> None:
        for kind, words in (
            ("503", "HTTP 503; check the service's status"),
            ("429", "HTTP 429"),
            ("cut", "IncompleteRead|ChunkedEncodingError|ProtocolError"),
            ("stall", "Read timed out.*check the network"),
        ):
            with self.subTest(kind):
                self.spoil(kind, 1000)
                begun = time.monotonic()
                error = self.refused("unreachable", words, self.get)
                self.assertRegex(
                    str(error), rf"^gs://.*/x: the download failed after \d attempts .*deadline {DEADLINE:g} s"
                )
                self.assertLess(abs(time.monotonic() - begun - DEADLINE), 1.5)
                self.assertEqual(list(self.folder.iterdir()), [])
                service.clear()

    def test_a_transfer_that_is_too_slow_ends_at_the_deadline(self) -> None:
        self.spoil("slow", 1000)
        begun = time.monotonic()
        store = self.open(deadline=1)
        self.refused("unreachable", r"no time was left; .*longer deadline", lambda: self.get(store=store))
        self.assertLess(time.monotonic() - begun, 1.5)

    def test_content_that_is_always_damaged_is_told_before_the_deadline(self) -> None:
        for kind, words in (("flip", "its CRC32C is not the one"), ("flip-unsigned", "SHA-256 .*, expected")):
            with self.subTest(kind):
                self.spoil(kind, 1000)
                self.refused("damaged", f"after 3 attempts .*arrives damaged: {words}", self.get)
                self.assertEqual(len(service.proxy.asked), 3)
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_is_read_into_memory_is_compared_too(self) -> None:
        for kind in ("flip", "flip-unsigned"):
            self.spoil(kind)
            self.assertEqual(self.store.read("x"), SMALL)
            self.spoil(kind, 1000)
            self.refused("damaged", "after 3 attempts .*arrives damaged: .*CRC32C", self.store.read, "x")

    def test_what_is_refused_is_told_at_once(self) -> None:
        self.spoil("403", 1000)
        for work in (self.get, self.store.list, lambda: self.store.read("x")):
            words = "after 1 attempt .*HTTP 403: told so; may the account of the application default use the"
            self.refused("refused", words, work)
        self.assertEqual(len(service.proxy.asked), 3)
        self.spoil("400", 1000)
        self.refused("refused", "after 1 attempt .*HTTP 400: told so$", self.get)

    def test_a_stopped_store_ends_what_runs(self) -> None:
        self.spoil("slow", 1000)
        timer = threading.Timer(0.3, self.store.stop)
        timer.start()
        self.refused("stopped", "/x: the download was given up", self.get)
        timer.join()
        self.refused("stopped", "/x: the download was given up", self.get)

    def test_a_full_disk_is_not_the_services_fault(self) -> None:
        with open("/dev/full", "wb") as full, mock.patch.object(gcs, "_opened", return_value=full):
            self.refused("local", "after 1 attempt .*No space left on device, after 8192 of 256000", self.get)

    def test_listing_and_deleting_are_tried_again(self) -> None:
        self.spoil("503", 2)
        self.assertEqual([each.name for each in self.store.list()], ["x"])
        self.spoil("503", 1, "DELETE")
        self.store.delete("x")
        self.store.write("x", b"1")
        self.spoil("lose-answer", 1, "DELETE")
        self.store.delete("x")
        self.assertEqual(self.store.retries, 4)
        self.assertEqual(self.store.list(), [])


class Uploads(Case):
    def test_what_passes_is_survived_and_the_object_is_whole(self) -> None:
        for content, method in ((SMALL, "POST"), (LARGE, "POST"), (LARGE, "PUT")):
            for kind in ("503", "429", "stall", "lose-answer"):
                with self.subTest(kind, method=method, size=len(content)):
                    store, name = self.open(deadline=8), f"{len(content)}-{method}-{kind}"
                    self.spoil(kind, 1, method)
                    store.put(self.file(content), name)
                    self.assertEqual(store.retries, 1)
                    service.clear()
                    self.assertEqual(store.read(name), content)

    def test_the_second_half_of_a_large_upload_may_fail(self) -> None:
        store = self.open(deadline=8)
        real = service.proxy.next_fault
        sent: list[str] = []

        def second(method: str, path: str) -> str:
            if method == "PUT":
                sent.append(path)
            return "503" if method == "PUT" and len(sent) == 2 else real(method, path)

        with mock.patch.object(service.proxy, "next_fault", second):
            store.put(self.file(LARGE), "x")
        self.assertEqual((store.retries, store.read("x") == LARGE), (1, True))

    def test_what_arrives_damaged_is_removed_and_sent_again(self) -> None:
        for content, method in ((SMALL, "POST"), (LARGE, "PUT")):
            with self.subTest(method):
                store, name = self.open(deadline=8), method
                self.spoil("flip-sent", 1, method)
                store.put(self.file(content), name)
                self.assertEqual(store.retries, 1)
                service.clear()
                self.assertEqual(store.read(name), content)

    def test_what_always_arrives_damaged_is_told_and_not_left_there(self) -> None:
        store = self.open(deadline=8)
        self.spoil("flip-sent", 1000, "POST")
        self.refused(
            "damaged", "the upload failed after 3 attempts .*sent 256000 bytes of CRC32C", store.write, "x", SMALL
        )
        service.clear()
        self.assertEqual(store.list(), [])

    def test_a_damaged_object_that_cannot_be_removed_at_first_is_removed_later(self) -> None:
        store = self.open(deadline=8)
        service.proxy.faults = [Fault("flip-sent", "POST"), Fault("503", "DELETE")]
        store.write("x", SMALL)
        self.assertEqual((store.retries, store.read("x")), (1, SMALL))

    def test_reading_back_may_fail_for_a_while(self) -> None:
        store = self.open(deadline=8)
        asked: list[str] = []
        real = service.proxy.next_fault

        def after_the_upload(method: str, path: str) -> str:
            asked.append(method)
            return "503" if method == "GET" and "POST" in asked and asked.count("GET") == 2 else real(method, path)

        with mock.patch.object(service.proxy, "next_fault", after_the_upload):
            store.write("x", SMALL)
        self.assertEqual(asked, ["GET", "POST", "GET", "GET"])

    def test_what_lasts_or_is_refused_is_told(self) -> None:
        self.spoil("503", 1000, "POST")
        self.refused(
            "unreachable", r"the upload failed after \d attempts in 3.* s \(deadline 3 s\)", self.store.write, "x", b""
        )
        self.spoil("403", 1000, "POST")
        self.refused("refused", "the upload failed after 1 attempt .*storage.objectUser", self.store.write, "x", b"")

    def test_a_file_that_is_not_there_is_told(self) -> None:
        self.refused("local", "/x: .*none: No such file", self.store.put, self.folder / "none", "x")


class Gone(Case):
    def test_a_service_that_is_gone_is_told_at_the_deadline(self) -> None:
        gone = Service()
        with mock.patch.dict(os.environ, {gcs.EMULATOR: gone.proxy.url}):
            store = open_store(f"gs://{BUCKET}/x", deadline=2)
            store.write("x", SMALL)
            gone.end()
            begun = time.monotonic()
            fresh = open_store(f"gs://{BUCKET}/x", deadline=2)
            self.refused("unreachable", r"after \d attempts .*Connection refused", lambda: self.get(store=fresh))
        self.assertLess(time.monotonic() - begun, 4)


class Keys(Case):
    """A key never leaves this process, whatever goes wrong."""

    def key(self, **changes: t.Any) -> Path:
        document = {
            "type": "service_account",
            "client_email": "a@b",
            "private_key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n",
            "token_uri": "http://127.0.0.1:1/token",
        }
        path = self.file(json.dumps({**document, **changes}).encode(), "key.json")
        path.chmod(0o600)
        return path

    def test_the_emulator_is_asked_without_the_key_which_is_looked_at_all_the_same(self) -> None:
        path = self.key()
        open_store(f"gs://{BUCKET}/{self.id()}", credentials=path, deadline=DEADLINE).write("x", b"1")
        self.assertEqual(self.store.read("x"), b"1")
        path.chmod(0o640)
        self.refused(
            "credentials", "has mode 0640", lambda: open_store(f"gs://{BUCKET}/x", credentials=path, deadline=DEADLINE)
        )

    def test_a_key_that_is_none_is_told_without_it(self) -> None:
        with mock.patch.dict(os.environ):
            del os.environ[gcs.EMULATOR]
            error = self.refused(
                "credentials",
                r"the key .*key\.json cannot be used \(\w+\); create it again",
                lambda: open_store("gs://bucket/x", credentials=self.key()),
            )
        self.assertNotIn(SECRET, "".join(traceback.format_exception(type(error), error, error.__traceback__)))

    def test_without_any_credentials_it_is_told_what_to_give(self) -> None:
        none = {"GOOGLE_APPLICATION_CREDENTIALS": str(self.folder / "none"), "NO_GCE_CHECK": "true"}
        with mock.patch.dict(os.environ, none):
            del os.environ[gcs.EMULATOR]
            self.refused("credentials", "no credentials: .*give the file of a key", lambda: open_store("gs://bucket/x"))

    def test_a_key_that_the_token_server_refuses_is_told_without_it(self) -> None:
        made = rsa.generate_private_key(65537, 2048)
        private = made.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        path = self.key(private_key=private, token_uri=f"{service.proxy.url}/token")
        records: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
        root = logging.getLogger()
        self.addCleanup(root.setLevel, root.level)
        self.addCleanup(root.removeHandler, handler)
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        self.spoil("400", 1000, "POST", "/token")
        with mock.patch.dict(os.environ):
            del os.environ[gcs.EMULATOR]
            store = open_store("gs://bucket/x", credentials=path, deadline=DEADLINE)
            error = self.refused("credentials", r"no token for the key .*key\.json: RefreshError", store.read, "x")
        told = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.assertTrue(records)
        for line in private.splitlines()[1:-1]:
            self.assertNotIn(line, told + "".join(records) + repr(vars(store)))


class Checksums(unittest.TestCase):
    def test_ours_is_the_librarys(self) -> None:
        ours = crc32c.Slow()
        ours.update(SMALL)
        self.assertNotIsInstance(crc32c.checksum(), crc32c.Slow)
        self.assertEqual(crc32c.text(ours), checksum(SMALL))


def checksum(content: bytes) -> str:
    found = crc32c.checksum()
    found.update(content)
    return crc32c.text(found)


if __name__ == "__main__":
    unittest.main()

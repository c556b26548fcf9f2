# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""Tokens with the real NumPy: *.npz files as NumPy writes them, shards as it reads them, staged and from a bucket.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/deepspeed -p 'check_*.py'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import typing as t
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import kit
import numpy
from bucket import BUCKET, Fault, Service
from kit.errors import KitError
from kit.pretraining import converter, manifest, markov, npz, tokens
from kit.pretraining.store import open_store

FILES = Path(kit.__file__).resolve().parents[1]
STAGE = FILES / "datasets/pretraining_tokens/stage.py"


class Case(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name, "so'urce; x")
        self.folder.mkdir()
        self.into = Path(scratch.name, "into")
        self.into.mkdir()

    def save(self, name: str, ids: t.Any, **others: t.Any) -> Path:
        path = self.folder / name
        with open(path, "wb") as stream:
            numpy.savez(stream, **({"input_ids": ids} if ids is not None else {}), **others)
        return path

    def convert(self, vocab: int = 50000, **options: t.Any) -> manifest.Manifest:
        return converter.convert(npz.sources(self.folder), self.into, vocab=vocab, source="x", **options)

    def read(self, made: manifest.Manifest, split: str) -> list[int]:
        opened = tokens.Split(self.into, made, split)
        found: list[int] = numpy.frombuffer(opened.read(0, len(opened)), opened.numpy_type).tolist()
        return found

    def refused(self, words: str, **options: t.Any) -> None:
        with self.assertRaisesRegex(KitError, words):
            self.convert(**options)
        self.assertFalse((self.into / manifest.NAME).exists())


class Npz(Case):
    def test_every_type_of_whole_numbers_in_one_or_two_dimensions(self) -> None:
        expected: list[int] = []
        for number, kind in enumerate(("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", ">i8", ">u2")):
            ids = numpy.arange(number, number + 12, dtype=kind)
            expected += ids.tolist()
            self.save(f"{number:02d}.npz", ids.reshape(3, 4) if number % 2 else ids, attention_mask=numpy.ones(12))
        made = self.convert(validation=5, limit=32)
        self.assertEqual(self.read(made, "train") + self.read(made, "validation"), expected)
        self.assertEqual((made.dtype, made.max_token, made.tokens("validation")), ("<u2", 20, 5))
        self.assertEqual(tokens.verify(self.into, scan=True)["verified_shards"], len(made.shards))

    def test_files_are_taken_by_name_compressed_or_not_and_read_in_pieces(self) -> None:
        ids = numpy.random.default_rng(0).integers(0, 100_000, 10_000)
        numpy.savez_compressed(self.folder / "b.npz", input_ids=ids[5000:])
        self.save("a.npz", ids[:5000])
        self.save("empty.npz", ids[:0])
        with mock.patch.object(npz, "PIECE", 777):
            made = self.convert(100_000)
        self.assertEqual(self.read(made, "train") + self.read(made, "validation"), ids.tolist())
        self.assertEqual((made.dtype, made.max_token, made.tokens("validation")), ("<u4", ids.max(), 50))

    def test_a_token_that_is_none_is_told_with_file_place_and_both_numbers(self) -> None:
        for kind, wrong in (("<i8", 50000), ("<u2", 50256), ("<i4", -1), ("<u8", 1 << 63)):
            with self.subTest(kind):
                ids = numpy.arange(30).astype(kind).reshape(5, 6)
                ids[2, 3] = wrong
                path = self.save("x.npz", ids)
                words = f"x.npz: token {wrong} at position 15 is not below the vocabulary of 50000 tokens"
                with mock.patch.object(npz, "PIECE", 4):
                    self.refused(words)
                ids[2, 3] = 49999
                self.save(path.name, ids)
                self.assertEqual(self.convert().max_token, 49999)
                (self.into / manifest.NAME).unlink()

    def test_what_is_no_array_of_tokens_is_told(self) -> None:
        for words, ids in (
            ("holds float32, expected whole numbers", numpy.ones(3, "f4")),
            ("holds bool, expected whole numbers", numpy.ones(3, bool)),
            ("holds object, expected whole numbers", numpy.array([[1], [2, 3]], dtype=object)),
            ("holds <U1, expected whole numbers", numpy.array(["a"])),
            ("has 0 dimensions, expected 1 or 2", numpy.array(3)),
            ("has 3 dimensions, expected 1 or 2", numpy.ones((2, 2, 2), int)),
            ("is stored by columns; save numpy.ascontiguousarray", numpy.asfortranarray(numpy.ones((2, 3), int))),
        ):
            with self.subTest(words):
                self.save("x.npz", ids)
                self.refused(rf"x\.npz: input_ids {words}")
        self.save("x.npz", None, labels=numpy.ones(3), other=numpy.ones(3))
        self.refused(r"x\.npz has no array input_ids: it holds labels\.npy, other\.npy$")
        self.save("x.npz", None)
        self.refused(r"x\.npz has no array input_ids: it holds nothing$")

    def test_one_column_by_columns_is_the_same_by_rows(self) -> None:
        self.save("x.npz", numpy.asfortranarray(numpy.arange(6).reshape(6, 1)))
        self.assertEqual(self.read(self.convert(), "train"), [0, 1, 2, 3, 4])

    def test_a_damaged_file_is_told(self) -> None:
        path = self.save("x.npz", numpy.arange(10_000))
        whole = path.read_bytes()
        for content in (b"", whole[:5000], b"<html>" * 99, whole[:20] + bytes(30) + whole[50:]):
            path.write_bytes(content)
            self.refused(r"x\.npz: (this npz file is damaged or cannot be read|input_ids is not an array of NumPy's)")
        path.write_bytes(whole[:40000] + bytes([whole[40000] ^ 1]) + whole[40001:])
        self.refused(r"x\.npz: this npz file is damaged .*CRC")
        numpy.savez_compressed(path, input_ids=numpy.arange(10_000))
        packed = bytearray(path.read_bytes())
        packed[len(packed) // 2 : len(packed) // 2 + 50] = bytes(50)
        path.write_bytes(packed)
        self.refused(r"x\.npz: this npz file is damaged")

    def test_an_array_that_is_shorter_than_its_header_says_is_told(self) -> None:
        self.save("x.npz", numpy.arange(100))
        with zipfile.ZipFile(self.folder / "x.npz") as archive:
            array = archive.read("input_ids.npy")
        with zipfile.ZipFile(self.folder / "x.npz", "w") as archive:
            archive.writestr("input_ids.npy", array[:-8])
        self.refused(r"x\.npz: input_ids ends early: it is damaged")

    def test_a_header_of_another_shape_is_told(self) -> None:
        self.save("x.npz", numpy.arange(9000) % 50)
        with zipfile.ZipFile(self.folder / "x.npz") as archive:
            array = archive.read("input_ids.npy")
        for header, words in (
            (b"(1000,), }", "holds more than its header says: it is damaged"),
            (b"(0,), }   ", "hold no tokens$"),
            (b"(-5,-2), }", r"has the shape \(-5, -2\): it is damaged"),
        ):
            with self.subTest(words), zipfile.ZipFile(self.folder / "x.npz", "w") as archive:
                archive.writestr("input_ids.npy", array.replace(b"(9000,), }", header))
            self.refused(words)
        with zipfile.ZipFile(self.folder / "x.npz", "w") as archive:
            archive.writestr("input_ids.npy", array[:10] + b'{"descr": [[[[['.ljust(117) + b"\n" + array[128:])
        self.refused(r"x\.npz: input_ids is not an array of NumPy's")

    def test_a_folder_without_files_is_told(self) -> None:
        self.refused(r"has no \*\.npz files$")
        self.save("x.npz", numpy.arange(10))
        self.save("y.npz", numpy.arange(10))
        with mock.patch.object(npz, "MAX_FILES", 1):
            self.refused(r"has 2 \*\.npz files, expected at most 1")
        (self.folder / ".hidden.npz").write_bytes(b"")
        self.assertEqual(self.convert().tokens(), 20)

    def test_numpy_and_python_find_the_same_largest_token(self) -> None:
        self.save("x.npz", numpy.random.default_rng(1).integers(0, 40_000, 5000))
        made = self.convert()
        found = [tokens.largest_token(self.into, made, shard) for shard in made.shards]
        with mock.patch.dict(sys.modules, {"numpy": None}):
            self.assertEqual([tokens.largest_token(self.into, made, shard) for shard in made.shards], found)
        self.assertEqual(max(found), made.max_token)


class Staged(Case):
    """As the play stages them, by the command line."""

    service: Service

    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service()
        cls.addClassCleanup(cls.service.end)

    def run_it(self, *command: t.Any) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(FILES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "STORAGE_EMULATOR_HOST": self.service.proxy.url,
        }
        return subprocess.run(
            [sys.executable, *map(str, command)], env=environment, capture_output=True, text=True, check=False
        )

    def stage(self, target: str, *options: t.Any) -> dict[str, t.Any]:
        done = self.run_it(STAGE, "--target", self.into / target, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return t.cast("dict[str, t.Any]", json.loads(done.stdout))

    def test_the_stand_in_goes_to_a_bucket_and_comes_from_it(self) -> None:
        answer = self.stage("stand-in", "--source", "stand-in")
        self.assertEqual((answer["changed"], answer["tokens"], answer["max_token"]), (True, 2_100_000, 2047))
        self.assertTrue(answer["description"].startswith("stand-in for a corpus: "))
        found = manifest.read(self.into / "stand-in")
        self.assertEqual((len(found.shards), found.entropy), (5, markov.ENTROPY))
        url = f"gs://{BUCKET}/staged"
        done = self.run_it("-m", "kit", "tokens", "upload", self.into / "stand-in", url)
        self.assertEqual((done.returncode, json.loads(done.stdout)["verified_shards"]), (0, 5), done.stderr)
        self.service.proxy.faults = [Fault("503", times=2), Fault("flip", part="train-00001")]
        staged = self.stage("bucket", "--source", "download", "--url", url)
        self.assertEqual(staged["manifest_sha256"], answer["manifest_sha256"])
        self.assertEqual(staged["sha256"], answer["sha256"])
        self.service.clear()
        self.assertFalse(self.stage("bucket", "--source", "download", "--url", url)["changed"])
        self.assertEqual(self.service.proxy.asked, [])
        done = self.run_it("-m", "kit", "tokens", "fetch", url, self.into / "cache", "--workers", "3")
        self.assertEqual((done.returncode, json.loads(done.stdout)["fetched_shards"]), (0, 5), done.stderr)
        done = self.run_it("-m", "kit", "tokens", "verify", self.into / "cache", "--scan", "--stated", "2100000")
        self.assertEqual((done.returncode, json.loads(done.stdout)["verified_shards"]), (0, 5), done.stderr)
        self.assertEqual(json.loads(done.stdout)["size"], "2,100,000 tokens of 2 bytes are 0.0 GB")

    def test_a_shard_that_is_damaged_in_the_bucket_is_told(self) -> None:
        self.save("x.npz", numpy.arange(2000))
        self.convert(validation=100, limit=1000)
        with mock.patch.dict(os.environ, {"STORAGE_EMULATOR_HOST": self.service.proxy.url}):
            store = open_store(f"gs://{BUCKET}/damaged", deadline=5)
            tokens.upload(self.into, store)
            content = (self.into / "train-00001.bin").read_bytes()
            store.delete("train-00001.bin")
            store.write("train-00001.bin", content[:-1] + b"!")
            with self.assertRaisesRegex(KitError, r"damaged/train-00001\.bin: CRC32C .*, the manifest says"):
                tokens.fetch(store, self.into / "cache")
            store.delete("train-00001.bin")
            with self.assertRaisesRegex(KitError, r"damaged/train-00001\.bin, which the manifest names, is not there"):
                tokens.fetch(store, self.into / "cache")

    def test_npz_files_become_shards_by_the_command_line_and_by_the_play(self) -> None:
        self.save("a.npz", numpy.arange(1000))
        self.save("b.npz", numpy.arange(1000, 2000).reshape(10, 100))
        options = ["--vocab", "50257", "--validation", "100", "--stated", "2000"]
        done = self.run_it("-m", "kit", "tokens", "convert", self.folder, self.into / "shards", *options)
        self.assertEqual((done.returncode, json.loads(done.stdout)["train_tokens"]), (0, 1900), done.stderr)
        answers = [self.stage("staged", "--source", "path", "--from", self.folder) for _each in range(2)]
        self.assertEqual([answer["changed"] for answer in answers], [True, False])
        self.assertEqual((answers[0]["tokens"], answers[0]["vocab"], answers[0]["max_token"]), (2000, 50000, 1999))

    def test_a_token_outside_the_vocabulary_stages_nothing(self) -> None:
        self.save("a.npz", numpy.array([1, 2, 50256, 3]))
        done = self.run_it(STAGE, "--target", self.into / "x", "--source", "path", "--from", self.folder)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(
            done.stderr,
            r"^stage pretraining_tokens: .*/a\.npz: token 50256 at position 2 is not below the vocabulary of 50000 .*"
            r"convert with `python3 -B -m kit tokens convert --vocab`, and give that folder\.\)\n$",
        )
        self.assertEqual([path.name for path in self.into.iterdir() if path.suffix != ".lock"], [])


if __name__ == "__main__":
    unittest.main()

# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much is found of what is a credential, and of what is none."""

from __future__ import annotations

import base64
import hashlib
import random
import string
import time
import uuid
from pathlib import Path

import pytest
from kit.profiles import leaks

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
NAMES = ("RotaryPositions", "Dropout", "LayerNorm2d", "SiluActivation", "GroupedQueryAttention")
ROOT = Path(__file__).resolve().parents[4]
MANY = 500
SOME = random.Random(4)  # credentials of the tests are made here, so that none stands in a file


@pytest.fixture(autouse=True)
def drawn_anew(request):
    """Draw the same in a test whichever ran before it."""
    SOME.seed(request.node.nodeid)


def word(length: int, alphabet: str = LETTERS) -> str:
    return "".join(SOME.choice(alphabet) for _each in range(length))


PREFIXED = {
    "an AWS access key": lambda: (
        SOME.choice(("AKIA", "ASIA", "ABIA", "ACCA")) + word(16, string.ascii_uppercase + string.digits)
    ),
    "a GitHub token": lambda: "ghp_" + word(36),
    "a GitLab token": lambda: "glpat-" + word(20),
    "a Hugging Face token": lambda: "hf_" + word(34),
    "a Slack token": lambda: (
        SOME.choice(("xoxb", "xoxc", "xoxp", "xapp-1-A0")) + "-" + word(12, string.digits) + "-" + word(24, HEX)
    ),
    "a webhook of Slack": lambda: "https://hooks.slack.com/services/T" + word(8) + "/B" + word(8) + "/" + word(24),
    "an API key of the form sk-": lambda: "sk-proj-" + word(40),
    "a Google API key": lambda: "AIza" + word(35),
    "a token of Google's OAuth": lambda: "ya29." + word(60),
    "a JSON web token": lambda: f"eyJ{word(20)}.eyJ{word(30)}.{word(43)}",
    "a private key": lambda: SOME.choice(
        (
            *(f"-----BEGIN {kind}PRIVATE KEY-----" for kind in ("", "RSA ", "OPENSSH ", "ENCRYPTED ")),
            "-----BEGIN PGP PRIVATE KEY BLOCK-----",
            "AGE-SECRET-KEY-1" + word(58, string.ascii_uppercase + string.digits),
        )
    ),
    "a password in an address": lambda: (
        f"{SOME.choice(('postgresql', 'HTTPS', 'Redis'))}://user:{word(8)}@db.example.org/runs"
    ),
    "a token in an address": lambda: f"https://mlflow/?token={word(40, HEX)}",
    "a key in an address": lambda: f"https://mlflow/?key={word(15, 'abcdef')}0",
    "a token as the user of an address": lambda: f"https://{word(39, 'abcdef')}0@api.wandb.ai/",
    "a Vault token": lambda: SOME.choice(("hvs." + word(30), "s." + word(23) + "7")),
    "a SendGrid key": lambda: f"SG.{word(22)}.{word(43)}",
    "a bearer token": lambda: f"Authorization: Bearer {word(40)}",
    "a W&B key": lambda: "wandb_v1_" + word(40),
    "a Databricks token": lambda: "dapi" + word(32, HEX),
    "a Stripe key": lambda: SOME.choice(("sk_live_", "rk_live_", "sk_test_")) + word(24),
    "an npm token": lambda: "npm_" + word(35) + "7",
    "a PyPI token": lambda: "pypi-AgEIcHlwaS5vcmc" + word(80),
    "a DigitalOcean token": lambda: "dop_v1_" + word(64, HEX),
    "an NVIDIA API key": lambda: "nvapi-" + word(64, LETTERS + "-_"),
    "a key of Azure's storage": lambda: f"AccountName=runs;AccountKey={word(86, LETTERS + '+/')}==",
    "a user and password of HTTP": lambda: (
        f"Authorization: Basic {base64.b64encode(f'user:{word(9)}'.encode()).decode()}"
    ),
}


def test_every_form_is_tried():
    assert set(PREFIXED) == set(leaks.FORMS)


@pytest.mark.parametrize("kind", PREFIXED)
@pytest.mark.parametrize("line", ["  name: {}", "  notes: see {} for it", "# {}", "- {}"])
def test_all_that_has_a_services_form_is_found_comments_included(kind, line):
    for _each in range(20):
        text = "a: 1\n" + line.format(PREFIXED[kind]()) + "\n"
        found = list(leaks.in_text(text))
        assert [each.line for each in found][:1] == [2], kind
        assert any(kind in each.text for each in found)


def random_share(make) -> float:
    SOME.seed(4)  # the share is the same, whichever tests ran before
    return sum(leaks.random_word(make()) for _each in range(MANY)) / MANY


@pytest.mark.parametrize("length", [32, 40, 64])
@pytest.mark.parametrize("more", ["", "+/", "-_", "!@$%^&*"])
def test_what_is_random_is_found_by_that_alone(length, more):
    assert random_share(lambda: word(length, LETTERS + more)) >= 0.95


def digest(name: str) -> str:
    return hashlib.new(name, word(10).encode()).hexdigest()


@pytest.mark.parametrize(
    "make",
    [
        lambda: digest("sha256"),
        lambda: "sha256:" + digest("sha256"),
        lambda: digest("sha1"),
        lambda: digest("md5"),
        lambda: str(uuid.UUID(int=SOME.getrandbits(128))),
        lambda: f"GPU-{uuid.UUID(int=SOME.getrandbits(128))}",
        lambda: f"MIG-{uuid.UUID(int=SOME.getrandbits(128))}",
        lambda: "sha384-" + base64.b64encode(hashlib.sha384(word(9).encode()).digest()).decode(),
        lambda: f"/mnt/beegfs/datasets/{word(5)}/Train_{word(6)}/shard-{SOME.randrange(9999):05}.safetensors",
        lambda: (
            f"transformers.Qwen{SOME.randrange(9)}ForSequenceClassificationWith{SOME.choice(NAMES)}And{SOME.choice(NAMES)}"
        ),
    ],
)
def test_digests_names_of_gpus_and_paths_are_no_credentials(make):
    assert random_share(make) == 0


@pytest.mark.parametrize(
    "name",
    [
        "Mixtral-8x7B-Instruct-v0.1",
        "Qwen3-30B-A3B-Instruct-2507-FP8",
        "Llama-4-Scout-17B-16E-Instruct",
        "GPT2-1B-ZeRO3-8xH100-SXM5-80GB",
        "HPC-A100x4-BF16-Lr1e3-Wd0p01-v2",
        "Orin-FT-W256L6-INT8-P0p3-R2",
    ],
)
def test_names_of_models_and_runs_are_no_credentials(name):
    assert values(f"a: {name}\n", {"a": name}) == []
    assert list(leaks.in_text(f"# as {name} was\n")) == []
    assert leaks.redacted(f"{name}_2: 0") == f"{name}_2: 0"


@pytest.mark.parametrize("cut", [(40,), (12, 11, 12), (20, 20)])
def test_what_is_random_is_found_though_hyphens_cut_it(cut):
    assert random_share(lambda: "-".join(map(word, cut))) >= 0.95


def values(text: str, value: object) -> list[tuple[object, ...]]:
    return [each.place for each in leaks.in_values(value, text, {("a",): 1, ("a", "api_key"): 2})]


@pytest.mark.parametrize(
    "key", ["password", "api_key", "apikey", "client_secret", "token", "privateKey", "aws_credentials"]
)
def test_a_key_gives_its_value_away(key):
    assert leaks.named(("s", key), "hunter2hunter2")
    assert not leaks.named(("s", key), "short")
    assert leaks.named(("s", key, 0), "hunter2hunter2")
    assert leaks.named(("s", key), "hunter22")
    assert not leaks.named(("s", key), "hunter2")


@pytest.mark.parametrize(
    "value", ["${API_KEY_OF_CI}", "<your key here>", "vault:runs/key", "/etc/keys/wandb", "{{ vault_key }}"]
)
def test_where_a_credential_is_kept_is_none(value):
    assert not leaks.named(("s", "api_key"), value)


def test_a_random_word_is_let_through_where_its_line_says_so():
    secret = word(40)
    assert values(f"a: {secret}\n", {"a": secret}) == [("a",)]
    assert values(f"a: {secret}  # not-a-secret\n", {"a": secret}) == []


def test_a_plain_value_is_no_credential():
    assert values("a: plain\n", {"a": "plain"}) == []
    assert values("a: 5\n", {"a": 5, "b": None, "token": 12345678}) == []


def test_a_credential_in_a_list_is_found_at_its_position():
    assert values("a: x\n", {"a": ["x", word(40)]}) == [("a", 1)]


@pytest.mark.parametrize(
    "text", ["aBcDeFgHiJkLmNoPqRsTuVwX", "aB1" * 7, "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHijklmnop12345678"]
)
def test_what_is_of_two_kinds_or_always_the_same_is_not_random(text):
    assert not leaks.random_word(text)
    assert leaks.redacted(f"see {text} there") == f"see {text} there"


def test_four_bits_a_character_are_random():
    assert leaks.random_word("aB1cD2eF3gH4iJ5k" * 2)


@pytest.mark.parametrize(("text", "share"), [("aB1", 1.0), ("aaB", 0.5), ("aBaB", 1.0), ("aaaa", 0.0), ("a_B1", 1.0)])
def test_the_share_of_neighbours_of_two_kinds(text, share):
    assert leaks._changes(text) == share


def test_a_value_that_is_not_in_the_file_is_found_too():
    secret = PREFIXED["a Hugging Face token"]()
    assert values("b: 1  # not-a-secret\n", {"a": secret}) == [("a",)]
    assert values("b: 1  # not-a-secret\n", {"a": word(40)}) == [("a",)]


@pytest.mark.parametrize(
    "comment",
    [
        "# api_key: hunter2hunter2",
        "a: 1  # password = hunter2hunter2",
        "# token=abcdefgh1",
        "# the password is: hunter22",
        '# {"a": {"api_key": "0123456789abcdef01234567"}}',
        "# {'api-key': 'abcdefgh1'}",
        "# pwd: hunter2hunter2",
        "# auth_tokens: abcdefgh1",
        "# private-key: abcdefgh1",
    ],
)
def test_what_a_comment_says_of_a_key_is_found(comment):
    (found,) = leaks.in_text(f"x: 1\n{comment}\n")
    assert (found.line, "by the word before it" in found.text) == (2, True)


@pytest.mark.parametrize(
    "comment",
    [
        "# token: see the vault",
        "# api_key: <yours>",
        "# secrets: none of these",
        "# tokenizer: bert-base-uncased-v2",
        "# tokenization: BPE-32000",
        "# tokens: 16x1024x128",
        "# num_tokens: 2,097,152",
        "# tokens_per_step=1048576",
        "# token-mixing: layer-12-of-24",
        "# passwordless: ssh-ed25519",
        "# secretary: A.Smith-1970",
        "# password: 'hunter2'",
    ],
)
def test_what_a_comment_says_of_a_key_otherwise_is_none(comment):
    assert list(leaks.in_text(comment)) == []
    assert values("a: x\n", {"a": comment}) == []
    assert leaks.redacted(comment) == comment


@pytest.mark.parametrize(
    "prose", ["password: hunter2hunter2", "see a: the password is: hunter2hunter2", "x\npwd=hunter22"]
)
def test_what_a_value_or_a_key_says_of_a_key_is_found_and_not_shown(prose):
    for value, place in (({"a": prose}, ("a",)), ({"a": {prose: None}}, ("a", prose)), ({"a": [prose]}, ("a", 0))):
        (found,) = leaks.in_values(value, "a: x\n", {("a",): 1})
        assert (found.place, "by the word before it" in found.text) == (place, True)
    assert "hunter2" not in leaks.redacted(prose)
    assert leaks.redacted(prose).startswith(prose.partition("hunter2")[0])


def test_a_long_credential_of_prose_is_not_shown_to_its_end():
    assert leaks.redacted(f"'password: it's{'1' * 300}x2'; see") == "'password: (not shown)'; see"


def test_a_key_that_is_a_credential_is_found():
    token = PREFIXED["a GitHub token"]()
    assert values("a: x\n", {"a": {token: 1}}) == [("a", token)]
    assert values("a: x\n", {"a": {"password": None, "api_key_of_ci": 1}}) == []


def test_all_below_a_section_with_a_credentials_name_is_one():
    assert leaks.is_named(("credentials", "wandb"))
    assert leaks.is_named(("secrets", 0, "value"))
    assert not leaks.is_named(("tokenizer", 0, "value"))
    assert values("a: x\n", {"secrets": [{"value": "hunter22"}]}) == [("secrets", 0, "value")]


@pytest.mark.parametrize(
    "part",
    [
        *("sk-a-", "eyJaaaaaaaa-", "a=:", "password=", "a://b:", "A://b:", "SG.", "hvs.", "s.", "?key="),
        *("xoxb-", "xapp-", "npm_", "pypi-", "nvapi-", "AccountKey=", "Authorization: Basic "),
    ],
)
def test_what_is_there_again_and_again_takes_no_time(part):
    began = time.process_time()
    list(leaks.in_text("# " + part * (200_000 // len(part))))
    assert time.process_time() - began < 5  # where it is tried anew from each of them it is minutes


def test_a_random_word_in_a_comment_is_found():
    (found,) = leaks.in_text(f"x: 1\n# {word(40)}\n")
    assert (found.line, "random" in found.text) == (2, True)
    assert list(leaks.in_text(f"# {word(40)} # not-a-secret\n")) == []


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn-baseline-classifier",
        "/models/sk-learn-ensemble-regressor-v2",
        "a ring-bearer internationalisation",
        "https://user:${PASSWORD}@host/path",
        "https://user:<password>@host/path",
        "https://host/path?tokens=many",
        "HTTPS://user:${PASSWORD}@host/path",
        "HTTPS://HOST:8080/Path@v2",
        "the basic transformers-2 of 2026",
        "npm_config_cache",
        "xapp-resources",
        "pypi-mirror-of-the-site",
    ],
)
def test_what_only_looks_like_a_services_form_is_none(text):
    assert leaks.form_of(text) is None


@pytest.mark.parametrize("text", ["redis://:hunter2hunter2@h/0", "https://u:p@h"])
def test_a_password_in_an_address_needs_no_user_and_no_length(text):
    assert leaks.form_of(text) == "a password in an address"


def test_a_long_line_takes_no_time():
    began = time.process_time()
    list(leaks.in_text("# " + "a" * 200_000))
    assert time.process_time() - began < 5  # with every beginning tried against every end it is minutes


def test_what_is_found_is_taken_out_of_a_text():
    for make in PREFIXED.values():
        secret = make()
        shown = leaks.redacted(f"key: {secret} expected none")
        assert "(not shown)" in shown
        assert secret.split()[-1] not in shown
        assert shown.startswith("key: ")
        assert shown.endswith(" expected none")
    secret = word(40)
    assert leaks.redacted(f"'{secret}'; expected a path") == "'(not shown)'; expected a path"
    assert leaks.redacted("training.epochs: 0; expected at least 1") == "training.epochs: 0; expected at least 1"


def test_nothing_is_shown():
    secret = PREFIXED["a GitHub token"]()
    found = [*leaks.in_text(f"a: {secret}\n"), *leaks.in_values({"api_key": "hunter2hunter2"}, "x\n", {})]
    assert len(found) == 2
    assert not any(secret in str(each) or "hunter2" in str(each) for each in found)


def test_the_projects_own_files_raise_no_alarm():
    folders = ("docs", "playbooks", "roles", "files", "inventories", "changelogs")
    kinds = (".md", ".yml", ".yaml", ".json")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in kinds]
    assert len(files) > 100
    alarms = []
    for path in files:
        lines = path.read_text(encoding="utf-8").split("\n")
        alarms += [(path.name, number) for number, line in enumerate(lines, 1) if leaks.random_word(line)]
        alarms += [(path.name, each.line) for each in leaks.in_text("\n".join(lines))]
    assert alarms == []

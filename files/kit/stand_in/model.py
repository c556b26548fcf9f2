# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A language model small enough for two CPU cores, in the files of a real one: random weights, its own tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.errors import KitError

SEED = 0
VOCABULARY = 1500


@dataclass(frozen=True)
class Design:
    """The properties that a stand-in takes from its model, and its size."""

    model_type: str  # one that transformers knows
    sizes: Mapping[str, Any]  # of its configuration
    begin: str  # tokens
    end: str
    unknown: str
    others: tuple[str, ...] = ()
    adds_begin: bool = False  # every text is tokenized with a leading begin token

    @property
    def special(self) -> list[str]:
        """The special tokens, in the order of their IDs."""
        return list(dict.fromkeys((self.unknown, self.begin, self.end, *self.others)))


def make(folder: Path, design: Design, texts: Iterable[str]) -> None:
    """Write model and tokenizer to ``folder``. Needs torch and transformers."""
    import torch  # noqa: PLC0415 - the kit runs on a bare Python
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415
    from transformers.utils import logging  # noqa: PLC0415

    logging.disable_progress_bar()
    tokenizer = make_tokenizer(design, texts)
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos")}
    config = AutoConfig.for_model(design.model_type, vocab_size=len(tokenizer), **design.sizes, **ids)
    torch.manual_seed(SEED)
    # The type of the real models. A job that does not set a type gets the type of the file.
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder, safe_serialization=True)


def make_tokenizer(design: Design, texts: Iterable[str]) -> Any:
    """Train a byte-level BPE tokenizer, which encodes any text and decodes it unchanged."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=design.special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() < VOCABULARY:
        raise KitError(
            f"expected a vocabulary of {VOCABULARY} entries from the texts, found {tokenizer.get_vocab_size()}"
        )
    if design.adds_begin:
        begin = (design.begin, tokenizer.token_to_id(design.begin))
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{design.begin} $A", pair=f"{design.begin} $A {design.begin}:1 $B:1", special_tokens=[begin]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=design.begin, eos_token=design.end, unk_token=design.unknown
    )

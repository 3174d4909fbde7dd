"""Training the infiller: a LoRA adapter of a causal language model that fills the gaps of a template."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from redraft.errors import InputError
from redraft.files import replacing
from redraft.models.causal import llama
from redraft.models.causal.adapter import Adapter, load_adapter, save_adapter
from redraft.models.causal.line import CausalLine
from redraft.models.checkpoints import fingerprint
from redraft.models.pull import SOURCES, pulled
from redraft.models.xlnet.files import CARD
from redraft.training.contrast import TOKENS_PER_PAIR, Contrast, Pair, Prompted, SampleWriter, row_nlls
from redraft.training.infilling import InfillExample, InfillText, PromptKind, TextShare
from redraft.training.loop import BEST, Schedule, train
from redraft.training.lora import LoraLlama
from redraft.training.processes import WHOLE, Share

_POOL = 16  # batches that are sorted by length together
_NUM_HELD_OUT = 384
_VALIDATE_EVERY = 200_000  # tokens
ADAPTER = "adapter"  # the folder of the result


@dataclass(frozen=True)
class InfillerConfig:
    """How an infiller is trained. Only the tokens of the sentences count, not those of the prompts."""

    num_tokens: int
    learning_rate: float = 1e-3
    batch: int = 32  # examples
    rank: int = 16
    alpha: float = 32.0
    eight_bits: bool = False  # precision of the products with the frozen weights
    seed: int = 0
    mix: tuple[TextShare, ...] = ()
    contrast: float = 0.0  # beta of redraft.training.contrast; 0: cross entropy alone


class InfillerTask:
    """An infiller as a task of redraft.training.loop: cross entropy of the sentence and its end, given the prompt."""

    def __init__(self, base: Path, lead: str, text: InfillText, held_out: InfillText, config: InfillerConfig):
        torch.manual_seed(config.seed)
        self.module = LoraLlama(base, config.rank, config.alpha, eight_bits=config.eight_bits)
        parameters = list(self.module.parameters())
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(parameters, config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0)
        ]
        self._tokenizer = llama.FileTokenizer(base)
        self._line = CausalLine(str(base), self._tokenizer, None, self.module.num_tokens, lead=lead)
        self._lead, self._text, self._config = lead, text, config
        self._contrast: Contrast | None = None
        self._writer: SampleWriter | None = None
        self._pool: tuple[int, list[list[Pair]]] = (-1, [])
        self._held_out = {
            kind.value: self._pairs([held_out.example(i, 0, kind) for i in range(_NUM_HELD_OUT // len(PromptKind))])
            for kind in PromptKind
        }
        self.settings = {
            **{name: value for name, value in asdict(config).items() if name not in ("num_tokens", "learning_rate")},
            "base": fingerprint(base / llama.WEIGHTS),
        }

    def start_from(self, adapter: Adapter) -> None:
        """Start from the weights of an adapter of the same rank and base model."""
        if adapter.base_hash != self.settings["base"] or (adapter.rank, adapter.alpha) != (
            self._config.rank,
            self._config.alpha,
        ):
            raise InputError(
                f"the adapter to start from has rank {adapter.rank} and is for {adapter.base}@{adapter.base_hash}; "
                f"this run has rank {self._config.rank} and base {self.settings['base']}"
            )
        self.module.start_from(adapter)

    def prefer_human(self, writer: SampleWriter) -> None:
        """Contrast human sentences with those of a writer, which has the weights of this moment."""
        self._writer, self._contrast = writer, Contrast(self.module, self._config.contrast)
        self._held_out = {
            kind: writer.pairs([pair.human for pair in pairs], self._config.seed)
            for kind, pairs in self._held_out.items()
        }

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        batch = share.of(self._batch(step))
        if not batch:
            return torch.zeros(()), 0
        return self._loss(batch), sum(pair.human.num_learned for pair in batch)

    def validate(self) -> Mapping[str, float]:
        return {kind: self._mean_loss(pairs) for kind, pairs in self._held_out.items()}

    def _mean_loss(self, pairs: Sequence[Pair]) -> float:
        in_order = sorted(pairs, key=lambda pair: len(pair.human.tokens))
        batches = [in_order[i : i + self._config.batch] for i in range(0, len(pairs), self._config.batch)]
        return sum(float(self._loss(batch)) for batch in batches) / sum(pair.human.num_learned for pair in pairs)

    def _loss(self, batch: Sequence[Pair]) -> Tensor:
        """Cross entropy of the human sentences, and the contrast of those that have a sample."""
        contrasted = [(pair.human, pair.own) for pair in batch if pair.own is not None]
        alone = [pair.human for pair in batch if pair.own is None]
        rows = [*(human for human, _ in contrasted), *(own for _, own in contrasted)]
        nlls = row_nlls(self.module, [*rows, *alone])
        total = nlls.sum() - nlls[len(contrasted) : len(rows)].sum()
        if self._contrast is not None and rows:
            total = total + TOKENS_PER_PAIR * self._contrast.losses(rows, nlls[: len(rows)]).sum()
        return total

    def _batch(self, step: int) -> list[Pair]:
        number, size = step // _POOL, self._config.batch
        if self._pool[0] != number:
            first = number * _POOL * size
            examples = [self._text.example(first + i, self._config.seed) for i in range(_POOL * size)]
            pairs = self._pairs(examples, number)
            self._pool = number, [pairs[i : i + size] for i in range(0, len(pairs), size)]
        order = torch.randperm(_POOL, generator=torch.Generator().manual_seed(number))
        return self._pool[1][int(order[step % _POOL])]

    def _pairs(self, examples: Sequence[InfillExample], seed: int = 0) -> list[Pair]:
        """Examples by length, each with a sample where there is a writer."""
        rows = sorted(map(self._encode, examples), key=lambda row: len(row.tokens))
        return self._writer.pairs(rows, seed) if self._writer else list(map(Pair, rows))

    def _encode(self, example: InfillExample) -> Prompted:
        before = self._tokenizer.encode(f"{self._lead}{example.prompt}\n", add_special_tokens=False)
        sentence = [token for word in self._line.tokens(example.words) for token in word]
        return Prompted((*before, *sentence, self._line.end), len(before))


def train_infiller(
    base: str, corpus: Path, out: Path, config: InfillerConfig, *, init: Path | None = None, quiet: bool = False
) -> float:
    """Train an adapter of a base model, given by its name (after ``redraft pull``) or folder; resumes an earlier run.

    The best adapter is saved in the format of peft. ``init`` is an adapter to start from. Returns the best NLL per
    token on held-out sentences.
    """
    source = SOURCES.get(base)
    folder, lead = (pulled(base), source.lead) if source else (Path(base), "")
    if not llama.can_load(folder):
        raise InputError(
            f"{base} cannot be adapted; give a Llama model in safetensors: a folder, or a name after redraft pull"
        )
    text, held_out = InfillText(corpus, config.mix), InfillText(corpus, config.mix, held_out=True)
    task = InfillerTask(folder, lead, text, held_out, config)
    if init is not None:
        task.start_from(load_adapter(init))
    if config.contrast > 0:
        if init is None:
            raise InputError("contrast needs an adapter to start from, which writes the negative examples: --init")
        task.prefer_human(_sample_writer(folder, lead, load_adapter(init), eight_bits=config.eight_bits))
    schedule = Schedule(config.num_tokens, config.learning_rate, 0.03, validate_every=_VALIDATE_EVERY, seed=config.seed)
    best = train(task, schedule, out, quiet=quiet)
    task.module.load_state_dict(load_file(out / BEST))
    base_hash, styles = fingerprint(folder / llama.WEIGHTS), tuple(text.styles)
    save_adapter(Adapter(config.rank, config.alpha, base, base_hash, task.module.deltas(), styles), out / ADAPTER)
    with replacing(out / ADAPTER / CARD) as path:
        card = {"training": asdict(config), "held_out_nll": {"token": round(best, 4)}}
        path.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return best


def _sample_writer(base: Path, lead: str, adapter: Adapter, *, eight_bits: bool) -> SampleWriter:
    network, tokenizer = llama.load(base, torch.int8 if eight_bits else torch.float32, adapter)
    line = CausalLine(str(base), tokenizer, network.max_tokens, network.num_tokens, lead=lead)
    return SampleWriter(network, line.end)

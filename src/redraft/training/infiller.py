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
from redraft.models.causal.file_tokenizer import FileTokenizer
from redraft.models.causal.line import CausalLine, Tokens
from redraft.models.checkpoints import fingerprint
from redraft.models.pull import SOURCES, pulled
from redraft.models.xlnet.files import CARD
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


@dataclass(frozen=True)
class _Encoded:
    """A prompt and a sentence in tokens; the first ``num_prompt`` have no loss."""

    tokens: Tokens
    num_prompt: int

    @property
    def num_learned(self) -> int:
        return len(self.tokens) - self.num_prompt


class InfillerTask:
    """An infiller as a task of redraft.training.loop: cross entropy of the sentence and its end, given the prompt."""

    def __init__(self, base: Path, lead: str, text: InfillText, held_out: InfillText, config: InfillerConfig):
        torch.manual_seed(config.seed)
        self.module = LoraLlama(base, config.rank, config.alpha, eight_bits=config.eight_bits)
        parameters = list(self.module.parameters())
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(parameters, config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0)
        ]
        self._tokenizer = FileTokenizer(base)
        self._line = CausalLine(str(base), self._tokenizer, None, self.module.num_tokens, lead=lead)
        self._lead, self._text, self._config = lead, text, config
        self._pool: tuple[int, list[list[_Encoded]]] = (-1, [])
        self._held_out = {
            kind.value: [self._encode(held_out.example(i, 0, kind)) for i in range(_NUM_HELD_OUT // len(PromptKind))]
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

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        rows = share.of(self._batch(step))
        if not rows:
            return torch.zeros(()), 0
        return self._loss(rows), sum(row.num_learned for row in rows)

    def validate(self) -> Mapping[str, float]:
        return {kind: self._mean_loss(rows) for kind, rows in self._held_out.items()}

    def _mean_loss(self, rows: Sequence[_Encoded]) -> float:
        in_order = sorted(rows, key=lambda row: len(row.tokens))
        batches = [in_order[i : i + self._config.batch] for i in range(0, len(rows), self._config.batch)]
        return sum(float(self._loss(batch)) for batch in batches) / sum(row.num_learned for row in rows)

    def _loss(self, rows: Sequence[_Encoded]) -> Tensor:
        longest = max(len(row.tokens) for row in rows)
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        learned = torch.zeros(len(rows), longest, dtype=torch.bool)
        for i, row in enumerate(rows):
            ids[i, : len(row.tokens)] = torch.tensor(row.tokens)
            learned[i, row.num_prompt : len(row.tokens)] = True
        hidden = self.module.hidden(ids[:, :-1])
        return self.module.nll(hidden[learned[:, 1:]], ids[learned]).sum()

    def _batch(self, step: int) -> list[_Encoded]:
        number, size = step // _POOL, self._config.batch
        if self._pool[0] != number:
            first = number * _POOL * size
            examples = [self._text.example(first + i, self._config.seed) for i in range(_POOL * size)]
            rows = sorted((self._encode(one) for one in examples), key=lambda row: len(row.tokens))
            self._pool = number, [rows[i : i + size] for i in range(0, len(rows), size)]
        order = torch.randperm(_POOL, generator=torch.Generator().manual_seed(number))
        return self._pool[1][int(order[step % _POOL])]

    def _encode(self, example: InfillExample) -> _Encoded:
        before = self._tokenizer.encode(f"{self._lead}{example.prompt}\n", add_special_tokens=False)
        sentence = [token for word in self._line.tokens(example.words) for token in word]
        return _Encoded((*before, *sentence, self._line.end), len(before))


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
    schedule = Schedule(config.num_tokens, config.learning_rate, 0.03, validate_every=_VALIDATE_EVERY, seed=config.seed)
    best = train(task, schedule, out, quiet=quiet)
    task.module.load_state_dict(load_file(out / BEST))
    base_hash, styles = fingerprint(folder / llama.WEIGHTS), tuple(text.styles)
    save_adapter(Adapter(config.rank, config.alpha, base, base_hash, task.module.deltas(), styles), out / ADAPTER)
    with replacing(out / ADAPTER / CARD) as path:
        card = {"training": asdict(config), "held_out_nll": {"token": round(best, 4)}}
        path.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return best

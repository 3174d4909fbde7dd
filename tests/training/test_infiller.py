"""Training the infiller: examples, gradients, resuming, the adapter that comes out."""

import random
from pathlib import Path

import pytest
import torch

from redraft.corpus import is_held_out
from redraft.errors import InputError
from redraft.models.causal import llama
from redraft.models.causal.adapter import load_adapter
from redraft.sentence import BLANK
from redraft.training.infiller import InfillerConfig, train_infiller
from redraft.training.infilling import InfillText, PromptKind, TextShare, _is_usable
from redraft.training.lora import LoraLlama
from tests.models.making import make_model, make_tokenizer


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    tokenizer = make_tokenizer()
    make_model("llama", len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    rng = random.Random(0)
    nouns, verbs = ["doctor", "dog", "house", "park", "mayor"], ["sees", "likes", "leaves", "finds"]
    lines = {f"The {rng.choice(nouns)} {rng.choice(verbs)} the old {rng.choice(nouns)} near {n}." for n in range(2500)}
    (folder / "news.txt").write_text("\n".join(sorted(lines)[:1500]) + "\n")
    (folder / "scenes.txt").write_text("\n".join(sorted(lines)[1500:]) + "\n")
    return folder


def test_examples_depend_on_their_number_alone_and_keep_their_words(corpus: Path) -> None:
    mix = (TextShare("news", "News", 3), TextShare("scenes", "Scene", 1))
    first, second = InfillText(corpus, mix), InfillText(corpus, mix)
    assert first.styles == ["News", "Scene"]
    for number in range(60):
        one = first.example(number, 0)
        assert one == second.example(number, 0)
        style, _, given = one.prompt.partition(": ")
        assert style.removesuffix(" words") in ("News", "Scene")
        for part in given.replace(" / ", BLANK).split(BLANK):
            assert part.strip().lower() in " ".join(one.words).lower().replace(" .", ".") or part.strip() in one.words


@pytest.mark.parametrize("kind", PromptKind)
def test_each_kind_of_prompt_hides_something(corpus: Path, kind: PromptKind) -> None:
    example = InfillText(corpus).example(3, 0, kind)
    assert (BLANK in example.prompt) == (kind is not PromptKind.ANY_ORDER)


@pytest.mark.parametrize(
    ("line", "is_whole"),
    [
        ("The mayor said that the bridge is safe.", True),
        ('"It is over," he said, and left.', True),
        ("3 people were hurt in the fire.", True),
        ("a dog runs across the old bridge.", False),  # captions begin in lower case and have no verb
        ("The mayor said that the bridge is", False),
        ("It was released on , and sold well.", False),  # a template of a wiki page was lost
        ("The firm had a revenue of .", False),
        ('He appeared in the film "" as a doctor.', False),
        ("Too short.", False),
    ],
)
def test_only_whole_sentences_are_learned(line: str, is_whole: bool) -> None:
    assert _is_usable(line, held_out=is_held_out(line)) == is_whole


def test_another_seed_starts_with_other_sentences(corpus: Path) -> None:
    found = InfillText(corpus)
    assert [found.example(i, 0).words for i in range(3)] != [found.example(i, 1).words for i in range(3)]


@pytest.mark.parametrize("written", ["news", "news=News", "news=News:0", "news=New s:1", "=News:1", "news=News:nan"])
def test_a_share_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(InputError, match="wikinews=News:40"):
        TextShare.parse(written)


def test_a_file_that_is_not_there_is_named(corpus: Path) -> None:
    with pytest.raises(InputError, match="novels"):
        InfillText(corpus, [TextShare("novels", "Novel", 1)])


def test_gradients_are_those_of_plain_low_rank_layers(base: Path) -> None:
    torch.manual_seed(0)
    network = LoraLlama(base, 2, 4.0)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ids = torch.tensor([[5, 9, 100, 7, 42, 8]])
    network.nll(network.hidden(ids[:, :-1])[0], ids[0, 1:]).sum().backward()
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        direction = torch.randn(parameter.shape, generator=generator)
        direction /= direction.norm()
        step = 1e-2
        losses = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.add_(sign * step * direction)
                losses.append(float(network.nll(network.hidden(ids[:, :-1])[0], ids[0, 1:]).sum()))
                parameter.sub_(sign * step * direction)
        slope = (losses[0] - losses[1]) / (2 * step)
        assert float((parameter.grad * direction).sum()) == pytest.approx(slope, rel=0.02, abs=0.02)


def test_training_learns_resumes_and_writes_what_the_network_loads(base: Path, corpus: Path, tmp_path: Path) -> None:
    config = InfillerConfig(num_tokens=3000, learning_rate=1e-2, batch=8, rank=2, alpha=4.0)
    whole = train_infiller(str(base), corpus, tmp_path / "whole", config, quiet=True)
    half = InfillerConfig(num_tokens=1500, learning_rate=1e-2, batch=8, rank=2, alpha=4.0)
    before = train_infiller(str(base), corpus, tmp_path / "half", half, quiet=True)
    assert whole < before
    adapter = load_adapter(tmp_path / "whole" / "adapter")
    network = LoraLlama(base, 2, 4.0)
    network.start_from(adapter)
    ids = (5, 9, 100, 7)
    plain, _ = llama.load(base, torch.float32, adapter)
    with torch.inference_mode():
        wanted = network.hidden(torch.tensor([ids]))[0, -1] @ network._frozen["head"].t()
    assert torch.allclose(plain.begin(ids)[0], wanted, atol=1e-3)
    more = train_infiller(str(base), corpus, tmp_path / "more", half, init=tmp_path / "whole" / "adapter", quiet=True)
    assert more < before
    config = InfillerConfig(num_tokens=100, rank=3, alpha=6.0)
    with pytest.raises(InputError, match="rank 3"):
        train_infiller(str(base), corpus, tmp_path / "x", config, init=tmp_path / "whole" / "adapter", quiet=True)

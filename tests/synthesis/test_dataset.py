"""Folders of synthetic data: the same whatever the workers and the kills, and refused where something is wrong."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft import corpus, text
from redraft.app.synthesize import synthesize
from redraft.errors import CorpusError, InputError
from redraft.models.pack import Pack
from redraft.synthesis.dataset import SynthesisConfig, synthesise
from redraft.synthesis.labels import Label
from redraft.synthesis.masked_lstm import PackMaskedLm
from redraft.synthesis.recipes import HEAVY_INSERT, PAPER
from redraft.synthesis.shards import StoredInstance, read_card, read_shard, shard_paths, write_card
from redraft.synthesis.words import Method

_SCRIPT = """
import sys
from pathlib import Path
from redraft.synthesis.dataset import SynthesisConfig, synthesise
from redraft.synthesis.words import Method

if __name__ == "__main__":
    settings = SynthesisConfig(Path(sys.argv[1]), 5, 48_000, 60, (Method.RANDOM,), sources_per_shard=40)
    synthesise(settings, Path(sys.argv[2]))
"""


def _settings(folder: Path, num: int = 1500, **others: object) -> SynthesisConfig:
    given = {"num_valid": 120, "methods": (Method.RANDOM,), "sources_per_shard": 64, **others}
    return SynthesisConfig(folder, 5, num, **given)  # type: ignore[arg-type]


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_for_one_and_four_workers(made_corpus: Path, tmp_path: Path) -> None:
    for workers in (1, 4):
        synthesise(_settings(made_corpus), tmp_path / str(workers), workers=workers)
    one = _content(tmp_path / "1")
    assert len(one) > 5
    assert one == _content(tmp_path / "4")


def test_killed_at_any_moment_it_goes_on(made_corpus: Path, tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(_SCRIPT)
    killed = tmp_path / "killed"
    command = [sys.executable, str(script), str(made_corpus), str(killed)]
    for num_shards in (1, 60):
        process = subprocess.Popen(command)
        while len(list(killed.glob("*.parquet"))) < num_shards and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert read_card(killed)["complete"] is False
    subprocess.run(command, check=True)
    subprocess.run([*command[:-1], str(tmp_path / "whole")], check=True)
    assert _content(killed) == _content(tmp_path / "whole")


def test_no_sentence_is_doubled_or_missing(made_corpus: Path, tmp_path: Path) -> None:
    settings = _settings(made_corpus, recipes=PAPER + HEAVY_INSERT)
    card = synthesise(settings, tmp_path)
    rows = [row for path in shard_paths(tmp_path, "train") for row in read_shard(path)]
    num_sources = -(-1500 // 8)
    expected = [(source, recipe.name) for source in range(num_sources) for recipe in settings.recipes]
    assert [(row.source, row.recipe) for row in rows] == expected
    counts = card["counts"]["train"]
    assert counts["sentences"] == len(rows) == sum(counts["recipe"].values())
    assert counts["sources"] == num_sources
    assert sum(counts["label"].values()) == sum(len(row.labels) for row in rows)


def _mended(row: StoredInstance) -> list[str]:
    """The words without those that are labelled as too many."""
    return [word for word, label in zip(row.words, row.labels[1:], strict=False) if label != Label.DELETE]


def test_the_splits_keep_apart_and_the_corpus_is_used_evenly(made_corpus: Path, tmp_path: Path) -> None:
    synthesise(_settings(made_corpus, num=6 * 200, num_valid=6 * 40), tmp_path)
    lines = {tuple(word.lower() for word in text.tokenise(line)): line for line in corpus.sentences(made_corpus)}
    for split, held_out in (("train", False), ("valid", True)):
        rows = [row for path in shard_paths(tmp_path, split) for row in read_shard(path)]
        sources: dict[int, set[str]] = {}
        for row in rows:
            if row.recipe == "delete-whole":
                kept = tuple(word.lower() for word in _mended(row))
                sources.setdefault(row.source, set()).add(lines[kept])
        found = [line for found in sources.values() for line in found]
        assert all(corpus.is_held_out(line) == held_out for line in found)
        assert len(found) == (40 if held_out else 200)  # the few held-out ones are used again and again


def test_source_sentences_are_spread_over_the_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for file in range(2):
        lines = (f"Sentence {file * 2000 + n} stands in a long line of others.\n" for n in range(2000))
        (folder / f"{file}.txt").write_text("".join(lines))
    synthesise(_settings(folder, num=6 * 200, num_valid=0), tmp_path / "out")
    rows = [row for path in shard_paths(tmp_path / "out", "train") for row in read_shard(path)]
    places = [int(_mended(row)[1]) for row in rows if row.recipe == "delete-whole"]
    for quarter in range(4):
        assert sum(quarter * 1000 <= place < (quarter + 1) * 1000 for place in places) == pytest.approx(50, abs=2)


def test_only_training_sentences_are_cut_down(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    short, long = "One two three four five six {}.\n", "One two three four five six seven eight nine ten {}.\n"
    (folder / "one.txt").write_text("".join((short, long)[n % 2].format(n) for n in range(2000)))
    synthesise(_settings(folder, num=600, num_valid=600, max_words=9), tmp_path / "out")
    longest = {
        split: max(len(row.words) for path in shard_paths(tmp_path / "out", split) for row in read_shard(path))
        for split in ("train", "valid")
    }
    assert longest == {"train": 9, "valid": 13}  # with a word too many


def test_both_methods(made_corpus: Path, tiny_pack: Pack, tmp_path: Path) -> None:
    load = PackMaskedLm(str(tiny_pack.folder))
    settings = _settings(made_corpus, num=600, num_valid=60, methods=tuple(Method))
    card = synthesise(settings, tmp_path, load_masked_lm=load)
    assert card["masked_lm"]["kind"] == "forward x backward LSTM"
    methods = card["counts"]["train"]["method"]
    assert methods["random"] * 5 == pytest.approx(methods["masked-lm"], rel=0.05)


def test_the_command(made_corpus: Path, tmp_path: Path) -> None:
    options = f"--corpus {made_corpus} --out {tmp_path / 'out'} --num 300 --num-valid 12 --seed 2".split()
    result = CliRunner().invoke(synthesize, [*options, "--method", "random", "--instances", "paper,heavy-insert"])
    assert result.exit_code == 0, result.output
    assert "304 training and 12 validation sentences" in result.output
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["seed"] == 2
    assert "heavy-insert-whole" in card["recipes"]
    wrong = CliRunner().invoke(synthesize, [*options, "--method", "magic"])
    assert wrong.exit_code == 2
    assert "'magic' is not one of random, masked-lm" in wrong.output


def test_other_settings_are_refused(made_corpus: Path, tmp_path: Path) -> None:
    synthesise(_settings(made_corpus, num=60, num_valid=6), tmp_path)
    with pytest.raises(InputError, match=r"different max_words, num;"):
        synthesise(_settings(made_corpus, num=66, num_valid=6, max_words=30), tmp_path)


def test_shards_of_unknown_origin_are_not_mixed_in(made_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "train-00000.parquet").write_bytes(b"?")
    with pytest.raises(InputError, match="without a card"):
        synthesise(_settings(made_corpus), tmp_path)


def test_what_lies_in_a_folder_is_checked(made_corpus: Path, tmp_path: Path) -> None:
    settings = _settings(made_corpus, num=1200, num_valid=6)
    card = synthesise(settings, tmp_path)
    first, second = (tmp_path / f"train-0000{n}.parquet" for n in range(2))
    whole = first.read_bytes()
    first.write_bytes(second.read_bytes())
    with pytest.raises(InputError, match=rf"{first.name} is not the shard of the card.json; remove it"):
        synthesise(settings, tmp_path)
    first.unlink()
    assert synthesise(settings, tmp_path) == card
    assert first.read_bytes() == whole
    (tmp_path / "train-99999.parquet").write_bytes(whole)
    with pytest.raises(InputError, match=r"train-99999.parquet does not belong to the data"):
        synthesise(settings, tmp_path)
    (tmp_path / "train-99999.parquet").unlink()
    write_card(tmp_path, {key: value for key, value in card.items() if key != "shards"} | {"complete": False})
    first.write_bytes(whole[:100])  # where the run was not finished nobody knows what should be there
    with pytest.raises(InputError, match=rf"{first.name} is damaged; remove it"):
        synthesise(settings, tmp_path)
    (tmp_path / "words.txt").unlink()
    with pytest.raises(InputError, match=r"no readable words.txt"):
        synthesise(settings, tmp_path)


def test_a_bad_corpus_is_refused_before_any_work(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    out = tmp_path / "out"
    with pytest.raises(CorpusError, match="not a folder"):
        synthesise(_settings(bad), out)
    bad.mkdir()
    with pytest.raises(CorpusError, match=r"no \.txt"):
        synthesise(_settings(bad), out)
    for content, message in [
        (b"\xff\xfe\x00 binary", "not readable text"),
        (b"zeros \0\0 inside\n", "binary data"),
        (b"\n\n", "too small"),
    ]:
        (bad / "one.txt").write_bytes(content)
        with pytest.raises(CorpusError, match=message):
            synthesise(_settings(bad), out)
    (bad / "one.txt").unlink()
    (bad / "one.txt").mkdir()
    with pytest.raises(CorpusError, match=r"one.txt is not a file"):
        synthesise(_settings(bad), out)
    assert not out.exists()


def test_sentences_that_are_all_too_short(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "one.txt").write_text("Too short.\n" * 3)
    with pytest.raises(CorpusError, match="no sentence of 6 to 52 words"):
        synthesise(_settings(folder, num_valid=0), tmp_path / "out")


def test_the_masked_lm_method_needs_a_model(made_corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a language model"):
        synthesise(_settings(made_corpus, methods=(Method.MASKED_LM,)), tmp_path)
    with pytest.raises(InputError, match="at least 1"):
        _settings(made_corpus, num=0)


def test_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "train-00000.parquet"
    for words, labels, message in [
        (["fine-tuning"], [0, 1, 1, 1, 1, 0], r"row 0: 6 labels do not fit 1 words"),
        (["a"], [0, 7, 0], r"labels must be 0 to 3"),
        ([], [0, 0], "at least one word"),
    ]:
        rows = {"words": [words], "labels": [labels], "recipe": ["x"], "method": ["random"], "source": [0]}
        schema = pa.schema({"words": pa.list_(pa.string()), "labels": pa.list_(pa.uint8())})
        table = pa.table(rows).set_column(0, "words", pa.array([words], schema.field("words").type))
        parquet.write_table(table, path)
        with pytest.raises(InputError, match=message):
            list(read_shard(path))
    path.write_text("no parquet")
    with pytest.raises(InputError, match="not a shard"):
        list(read_shard(path))
    with pytest.raises(InputError, match="no valid shard"):
        shard_paths(tmp_path, "valid")

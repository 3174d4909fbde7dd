"""The page of a rerun: whole in itself, readable without JavaScript, and working in a real browser."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.image import imread

from redraft.errors import InputError, OutputError
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.report import make_report, write_report
from redraft.experiments.reproduce import EXPERIMENTS, Reproduction

_CHROMIUM = shutil.which("chromium")
_VOID = {"meta", "img", "br"}


class _Reader(HTMLParser):
    """Tags that are left open, what is linked, and what a page holds."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"


@pytest.fixture(scope="module")
def page(finished: tuple[ReproduceConfig, Reproduction]) -> str:
    return make_report(finished[0].out, 2)


def test_the_page_is_whole_in_itself(page: str) -> None:
    read = _Reader(page)
    assert read.open == []
    links = [attributes.get(key) for _, attributes in read.attributes for key in ("src", "href") if key in attributes]
    assert all(link is not None and link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert not re.search(r"url\(|@import|<link|fetch\(|https?://(?!www\.w3\.org/2000/svg)", page)
    anchors = {attributes["id"] for _, attributes in read.attributes if "id" in attributes}
    assert {*EXPERIMENTS, "samples", "main"} <= anchors
    assert all(attributes.get("alt") for tag, attributes in read.attributes if tag == "img")
    scopes = [attributes.get("scope") for tag, attributes in read.attributes if tag == "th"]
    assert scopes.count(None) <= page.count("<thead>")  # only the empty corner under "system"


def test_tables_need_no_script(page: str, finished: tuple[ReproduceConfig, Reproduction]) -> None:
    plain = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    for one in finished[1].results:
        for grid in one.grids:
            shown = [
                f"{c.paper:.1f}" if grid.unit == "%" else f"{c.paper:.3f}"
                for r in grid.rows
                for c in r.cells
                if c.paper
            ]
            assert all(value in plain for value in shown)
    assert "unavailable" in plain
    assert "The consensus view is that this has not been achieved ." in plain


def test_samples_hold_drafts_and_traces(page: str) -> None:
    found = re.search(r'<script type="application/json" id=samples-data>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    sets = json.loads(found[1])["sets"]
    assert len(sets) == 12
    assert all(len(one["inputs"]) == 2 for one in sets)
    drafts = sets[0]["inputs"][0]["drafts"]
    assert [draft["system"] for draft in drafts][:4] == ["human", "gbs-plain", "gbs", "cgmh"]
    assert drafts[3]["trace"][0][1] == "start"
    assert any(mark for _, mark in drafts[2]["text"])


def test_text_cannot_break_the_page(finished: tuple[ReproduceConfig, Reproduction], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(finished[0].out, folder)
    for path in (*folder.glob("*.json"), *folder.glob("outputs/*/keywords-k1.jsonl")):
        content = path.read_text()
        path.write_text(re.sub(r'("(?:title|reference)": ")', r"\1</script><b>&<!--", content))
    page = make_report(folder, 1)
    assert _Reader(page).open == []
    assert "</script><b>" not in page


def test_a_run_under_way_can_be_looked_at(finished: tuple[ReproduceConfig, Reproduction], tmp_path: Path) -> None:
    shutil.copytree(finished[0].out, tmp_path / "out")
    path = tmp_path / "out/outputs/l-mcmc/keywords-k1.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 30])  # the last line is being written
    assert make_report(tmp_path / "out", 100)


def test_bad_folders_are_told_in_one_line(finished: tuple[ReproduceConfig, Reproduction], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("{}")
    for folder, message in ((tmp_path, "has no run.json"), (broken, "no table or figure")):
        with pytest.raises(InputError, match=message):
            make_report(folder, 1)
    (broken / "table1.json").write_text('{"name": 1}')
    with pytest.raises(InputError, match=r"table1\.json is not a result"):
        make_report(broken, 1)
    shutil.copy(finished[0].out / "table7.json", broken / "table1.json")
    (broken / "outputs/l-mcmc").mkdir(parents=True)
    (broken / "outputs/l-mcmc/keywords-k1.jsonl").write_text(
        '{"id": 1, "text": "A dog.", "input": {"keywords": [1]}}\n'
    )
    with pytest.raises(InputError, match="line 1 was not written by redraft reproduce"):
        make_report(broken, 1)
    (broken / "run.json").write_text("[]")
    with pytest.raises(InputError, match="not written by redraft reproduce"):
        make_report(broken, 1)
    with pytest.raises(InputError, match="--samples must be at least 1"):
        write_report(finished[0].out, tmp_path / "x.html", 0)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        write_report(finished[0].out, tmp_path / "file" / "x.html", 1)


@pytest.mark.skipif(_CHROMIUM is None, reason="no chromium here; on Debian: apt-get install chromium")
def test_a_real_browser_shows_the_page(finished: tuple[ReproduceConfig, Reproduction], tmp_path: Path) -> None:
    assert _CHROMIUM is not None
    path = write_report(finished[0].out, tmp_path / "report.html", 2)
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=2000",
        f"--user-data-dir={tmp_path}",
    ]
    picture = tmp_path / "page.png"

    def browse(*more: str) -> str:
        done = subprocess.run([_CHROMIUM, *options, *more], capture_output=True, text=True, timeout=600, check=True)
        return done.stdout

    asked = f"file://{path}#sample=keywords-k2%2Fk2-2&trace=l-mcmc"
    dom = browse("--dump-dom", asked)
    body = dom[dom.index('id="shown"') :]
    assert body.count('class="card"') >= 4  # the reference and the systems
    assert "How l-mcmc came to" in body
    assert "<polyline" in body or "Accepted revisions of l-mcmc, 0" in body
    assert dom.count("<option") >= 12 + 2
    browse("--window-size=900,1200", f"--screenshot={picture}", f"file://{path}")
    shown = imread(picture)
    assert shown.shape[:2] == (1200, 900)
    assert shown[..., :3].std() > 0.05  # an empty page is of one colour

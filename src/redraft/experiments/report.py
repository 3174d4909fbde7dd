"""A self-contained web page of a run: tables, figures, samples side by side, and traces of drafts."""

import base64
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from redraft.errors import InputError
from redraft.experiments import pages, result
from redraft.experiments.report_samples import sample_sets
from redraft.experiments.reproduce import ABOUT, EXPERIMENTS
from redraft.experiments.result import Grid, Result, SampleGroup, TableCell, TableRow
from redraft.experiments.systems import HUMAN
from redraft.files import replacing

_PAGE = Path(__file__).parent / "page"
_FACTS = {
    "redraft": "redraft",
    "pack": "pack",
    "steps": "steps",
    "seed": "seed",
}


def write_report(folder: Path, out: Path, num_samples: int) -> Path:
    """Write the page for an output folder of ``redraft reproduce``."""
    if num_samples < 1:
        raise InputError(f"--samples must be at least 1, not {num_samples}")
    page = make_report(folder, num_samples)
    with replacing(out) as partial:
        partial.write_text(page, encoding="utf-8")
    return out


def make_report(folder: Path, num_samples: int) -> str:
    """The page as HTML."""
    about = _about(folder)
    names = [name for name in EXPERIMENTS if (folder / f"{name}.json").exists()]
    results = [result.read(folder / f"{name}.json") for name in names]
    if not results:
        raise InputError(f"{folder} has no table or figure yet; let redraft reproduce finish")
    parts = [
        _head(about, names),
        "<main id=main>",
        *(_section(one, folder) for one in results),
        _samples(sample_sets(folder, num_samples)),
        "</main>",
        "<footer>The paper: He and Li, “Show Me How To Revise: Improving Lexically Constrained Sentence Generation "
        "with XLNet”, AAAI 2021. This page is self-contained; only choosing samples needs JavaScript."
        "</footer>",
        f"<script>{(_PAGE / 'page.js').read_text(encoding='utf-8')}</script>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _about(folder: Path) -> Mapping[str, Any]:
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{folder} is not a folder of redraft reproduce: it has no {ABOUT}") from error
    except ValueError as error:
        raise InputError(f"{folder / ABOUT} was not written by redraft reproduce ({error})") from error
    if not isinstance(about, dict):
        raise InputError(f"{folder / ABOUT} was not written by redraft reproduce")
    return about


def _e(value: object) -> str:
    return html.escape(str(value))


def _head(about: Mapping[str, Any], names: Sequence[str]) -> str:
    facts = "".join(
        f"<div><dt>{title}</dt><dd>{_e('none' if about[key] is None else about[key])}</dd></div>"
        for key, title in _FACTS.items()
        if key in about
    )
    links = "".join(f'<li><a href="#{_e(name)}">{_e(EXPERIMENTS[name].label)}</a></li>' for name in names)
    return f"""<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>redraft: the paper, reproduced</title>
<style>{(_PAGE / "page.css").read_text(encoding="utf-8")}</style>
</head>
<a class=skip href="#main">To the tables</a>
<header>
<h1>The paper, reproduced</h1>
<p class=lead>Every table and figure of “Show Me How To Revise”, reproduced with redraft. Our values are shown with 95 %
intervals beside the published ones, and the human reference beside the systems.</p>
<dl class=facts>{facts}</dl>
</header>
<nav aria-label="Tables and figures"><ul>{links}<li><a href="#samples">Samples and traces</a></li></ul></nav>"""


def _section(one: Result, folder: Path) -> str:
    parts = [f'<section id="{_e(one.name)}"><h2>{_e(one.title)}</h2>', _picture(one, folder)]
    parts += [_grid(grid) for grid in one.grids]
    parts += [_group(group) for group in one.groups]
    parts.append(f"<ul class=notes>{''.join(f'<li>{_e(note)}</li>' for note in one.notes)}</ul>" if one.notes else "")
    parts.append(_signatures(one.grids))
    return "\n".join(part for part in [*parts, "</section>"] if part)


def _picture(one: Result, folder: Path) -> str:
    path = folder / f"{one.name}.png"
    if not one.alt or not path.exists():
        return ""
    try:
        content = base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return f'<figure><img alt="{_e(one.alt)}" src="data:image/png;base64,{content}"></figure>'


def _grid(grid: Grid) -> str:
    if not grid.rows:
        return ""
    published = any(cell.paper is not None for row in grid.rows for cell in row.cells)
    width = ' colspan=2 scope="colgroup"' if published else ' scope="col"'
    head = "".join(f"<th{width}>{_e(column)}</th>" for column in grid.columns)
    below = "<tr><th></th>" + '<th scope="col">ours</th><th scope="col">paper</th>' * len(grid.columns) + "</tr>"
    rows = "".join(_row(row, grid, published) for row in grid.rows)
    return f"""<h3>{_e(pages.heading(grid))}</h3>
<div class=scroll tabindex=0 role=region aria-label="{_e(grid.title)}"><table>
<thead><tr><th scope="col">system</th>{head}</tr>{below if published else ""}</thead>
<tbody>{rows}</tbody></table></div>"""


def _row(row: TableRow, grid: Grid, published: bool) -> str:
    note = f"<span class=note>{_e(row.note)}</span>" if row.note else ""
    cells = "".join(_cell(cell, grid, published) for cell in row.cells)
    kind = " class=human" if row.system == HUMAN else ""
    return f'<tr{kind}><th scope="row">{_e(row.title)}{note}</th>{cells}</tr>'


def _cell(cell: TableCell, grid: Grid, published: bool) -> str:
    unit = grid.unit
    small = ", ".join(part for part in (pages.interval(cell, unit), pages.num_note(cell, grid)) if part)
    kind = '"ours none"' if cell.ours is None else "ours"
    ours = f"<td class={kind}>{_shown(cell.ours, unit)}{f'<small>{small}</small>' if small else ''}</td>"
    return ours + (f"<td class=paper>{_shown(cell.paper, unit)}</td>" if published else "")


def _shown(value: float | None, unit: str) -> str:
    return "–" if value is None else pages.number(value, unit)


def _group(group: SampleGroup) -> str:
    kind = "Template" if group.template else "Keywords"
    rows = "".join(
        f'<tr><th scope="row">{_e(one.title)}</th>'
        f"<td class=text>{_e(one.ours) or f'<span class=note>{_e(one.note or chr(8211))}</span>'}</td>"
        f"<td class=text>{_e(one.paper) or '–'}</td></tr>"
        for one in group.samples
    )
    return f"""<h3>{kind}: {_e(group.given)}</h3>
<div class=scroll tabindex=0 role=region aria-label="{_e(group.given)}"><table>
<thead><tr><th scope="col">system</th><th scope="col">here</th><th scope="col">in the paper</th></tr></thead>
<tbody>{rows}</tbody></table></div>"""


def _signatures(grids: Iterable[Grid]) -> str:
    found = dict.fromkeys(cell.signature for grid in grids for row in grid.rows for cell in row.cells if cell.signature)
    if not found:
        return ""
    lines = "<br>".join(_e(signature) for signature in found)
    return f"<details><summary>How each figure was computed</summary><p class=signatures>{lines}</p></details>"


def _samples(sets: Sequence[Mapping[str, Any]]) -> str:
    # "<" could end the script early or start a comment in it.
    data = json.dumps({"sets": sets}, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<section id=samples><h2>Samples and traces</h2>
<p class=lead>The sentence of each system for one input. Given words are marked; in templates, the words filled in.
The trace of a draft shows every accepted revision.</p>
<noscript><p>Choosing an input needs JavaScript. All outputs are in the folder <code>outputs</code>.</p></noscript>
<form id=chooser class=chooser hidden onsubmit="return false">
<label>Test set <select id=set></select></label>
<label>Input <select id=input></select></label>
<button type=button id=previous>previous</button>
<button type=button id=next>next</button>
</form>
<div id=shown aria-live=polite></div>
<div id=trace class=trace aria-live=polite></div>
<script type="application/json" id=samples-data>{data}</script>
</section>"""

"""Drafts and their revisions on a terminal."""

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from redraft import text
from redraft.sentence import Action, Constraints

if TYPE_CHECKING:
    from redraft.drafts import Draft
    from redraft.sampler import Revision

_COLOUR = {
    Action.REPLACE: "yellow",
    Action.INSERT: "green",
    Action.DELETE: "red",
    Action.SWAP: "cyan",
    Action.VARY: "magenta",
}


def show_draft(draft: "Draft", constraints: Constraints, *, trace: bool) -> None:
    """Print a draft, and with ``trace`` also its particles with their weights, its rewrites and its revisions."""
    console = Console(soft_wrap=True, highlight=False)
    if trace:
        _show_trace(console, draft)
    console.print(Text(draft.text, style="bold" if trace else ""))
    if not draft.constraints_met:
        missing = ", ".join(constraints.unmet(draft.words))
        print(f"redraft: not reached: {missing}; try more --steps or --chains", file=sys.stderr)


def _show_trace(console: Console, draft: "Draft") -> None:
    for particle in draft.particles:
        console.print(Text(f"{particle.weight:8.1%}  {particle.nll:6.2f}  {particle.text}", style="dim"))
    for step, rewrite in enumerate(draft.rewrites, 1):
        change = f"{' '.join(rewrite.old) or '(nothing)'} -> {' '.join(rewrite.new) or '(nothing)'}"
        shown = text.render(rewrite.words) if rewrite.accepted else f"not: {change}"
        console.print(Text(f"{step:>4}  rewrite   ").append(shown, style="" if rewrite.accepted else "dim"))
    for step, revision in enumerate(draft.trace, 1):
        style = "" if revision.accepted else "dim"
        line = Text(f"{step:>4}  ", style="dim")
        line.append(f"{revision.action.value:<8}", style=_COLOUR[revision.action] if revision.accepted else "dim")
        line.append(f"{revision.nll:6.2f}  ", style="dim")
        line.append_text(_sentence(revision) if revision.accepted else Text(_rejected(revision), style=style))
        console.print(line)


def _rejected(revision: "Revision") -> str:
    if revision.action in (Action.DELETE, Action.SWAP):
        return f"kept {revision.old!r}"
    if revision.old == revision.new:
        return f"kept {revision.old!r}: drawn again"
    return f"not {revision.new!r}" + (f" for {revision.old!r}" if revision.old else "")


def _sentence(revision: "Revision") -> Text:
    """Return the sentence after a revision, with the new word coloured."""
    shown = Text(text.render(revision.words))
    if revision.new is not None:
        start, end = text.spans(text.surface(revision.words))[revision.position]
        shown.stylize(_COLOUR[revision.action], start, end)
    return shown

"""Help pages in sections: options and commands under headings, examples, and lists of names."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

# The headings of options, in the order in which a help page shows them. Options without a heading come last.
WHAT = "What to write"
HOW = "How to write it"
OUTPUT = "Output"
MODELS = "Models"
SAMPLING = "Sampling"
_SECTIONS = (WHAT, HOW, OUTPUT, MODELS, SAMPLING)
_OTHER = "Options"

Example = tuple[str, str]  # a command line, and what it does
Command = Callable[..., None]  # the function of a command


class SectionOption(click.Option):
    """An option that is shown under a heading of the help page."""

    def __init__(self, *args: Any, section: str = _OTHER, **settings: Any):
        super().__init__(*args, **settings)
        self.section = section


def option(section: str, *names: str, **settings: Any) -> Callable[[Command], Command]:
    """Add an option to a command, as ``click.option`` does, under a heading of its help page."""
    return click.option(*names, cls=SectionOption, section=section, **settings)


class SectionCommand(click.Command):
    """A command whose help page groups its options and ends with lists of names and examples."""

    def __init__(
        self,
        *args: Any,
        examples: Sequence[Example] = (),
        lists: Mapping[str, Mapping[str, str]] | None = None,
        **settings: Any,
    ):
        super().__init__(*args, **settings)
        self._examples, self._lists = tuple(examples), dict(lists or {})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, grouped by section."""
        rows: dict[str, list[tuple[str, str]]] = {section: [] for section in (*_SECTIONS, _OTHER)}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is not None and isinstance(param, click.Option):  # the usage line shows the arguments
                rows[param.section if isinstance(param, SectionOption) else _OTHER].append(row)
        _write_lists(formatter, {section: shown for section, shown in rows.items() if shown})

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists of names, then the examples."""
        super().format_epilog(ctx, formatter)
        _write_lists(formatter, {heading: list(names.items()) for heading, names in self._lists.items()})
        write_examples(formatter, self._examples)


def write_examples(formatter: click.HelpFormatter, examples: Iterable[Example]) -> None:
    """Write each example as a line of explanation and a line to type."""
    examples = list(examples)
    if not examples:
        return
    with formatter.section("Examples"):
        for i, (command, explanation) in enumerate(examples):
            if i:
                formatter.write_paragraph()
            formatter.write_text(f"{explanation}:")
            with formatter.indentation():
                formatter.write(f"{'':>{formatter.current_indent}}{command}\n")


def _write_lists(formatter: click.HelpFormatter, lists: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Write definition lists whose second columns are aligned with each other."""
    width = max((len(name) for rows in lists.values() for name, _ in rows), default=0)
    for heading, rows in lists.items():
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(min(width, 28)), help_text) for name, help_text in rows])


def suggestion(given: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean ...?"`` if a known name is close to the given one, else an empty string."""
    close = difflib.get_close_matches(given, list(known), n=3)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""

from pathlib import Path

from redraft.app.help_pages import markdown


def test_the_documented_command_line_is_the_real_one() -> None:
    documented = Path(__file__).parents[2] / "docs" / "cli.md"
    assert documented.read_text() == markdown(), "run: python -m redraft.app.help_pages > docs/cli.md"

import subprocess
import sys
from pathlib import Path


def test_the_documented_command_line_is_the_real_one() -> None:
    """In a process of its own: click keeps the help option that a command had when it was first called."""
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    shown = subprocess.check_output([sys.executable, "-m", "redraft.app.help_pages"], text=True, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == shown, "run: python -m redraft.app.help_pages > docs/cli.md"

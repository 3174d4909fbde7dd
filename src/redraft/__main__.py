"""python -m redraft."""

from redraft.app.cli import main

main()

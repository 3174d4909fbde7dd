"""The writers of a server. Each is loaded once; the least recently used are dropped, so memory has a bound."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, replace

from redraft.assemble import opened
from redraft.drafts import Draft, Settings, WritingJob
from redraft.errors import InputError
from redraft.models.pack import available
from redraft.predict.heat_map import Explanation
from redraft.server.requests import ExplainRequest, Opening, WriteRequest
from redraft.systems import load, refuse_unwritable
from redraft.writer import Writer

_MOST_WRITERS = 4


class Writers:
    """Writes and explains. All but ``refuse`` belongs to one thread: models are not shared between threads.

    ``pack`` is the pack of the server, a name or a folder. Requests may ask for other packs by their names alone.
    """

    def __init__(self, pack: str):
        self.pack = pack
        self._open: OrderedDict[Opening, Writer] = OrderedDict()

    def refuse(self, request: WriteRequest | ExplainRequest) -> None:
        """Raise an error for what no writer of this server can do."""
        pack = request.opening.pack if isinstance(request, WriteRequest) else request.pack
        names = [folder.name for folder in available()]
        if pack != self.pack and pack not in names:
            raise InputError(f"there is no pack {pack!r}; choose one of: {', '.join(names)}")
        if isinstance(request, WriteRequest):
            refuse_unwritable(request.constraints, pack, request.opening.recipe, request.opening.target)

    def get(self, opening: Opening) -> Writer:
        """The writer for an opening, loaded if it is new."""
        plain = replace(opening, temperature=1.0)
        if plain not in self._open:
            self._open[plain] = _load(plain)
            if len(self._open) > _MOST_WRITERS:
                self._open.popitem(last=False)
        self._open.move_to_end(plain)
        writer = self._open[plain]
        return writer if opening == plain else writer.at_temperature(opening.temperature)

    def write(self, opening: Opening, settings: Settings, jobs: Sequence[WritingJob]) -> list[list[Draft]]:
        """The drafts of several jobs, written together."""
        return self.get(opening).write_jobs(jobs, settings)

    def explain(self, request: ExplainRequest) -> Explanation:
        """Where the classifier of a pack would revise a draft."""
        return self.get(Opening(request.pack)).explain(request.text, request.keywords)


def _load(opening: Opening) -> Writer:
    shaping = ("pack", "prefer", "prefer_length", "repetition_penalty")
    given = {name: value for name, value in asdict(opening).items() if name not in shaping}
    return load(opened(opening.pack), soft=opening.soft(), **given)

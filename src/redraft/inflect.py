"""Inflected forms of words, from the dictionary and the rules of lemminflect."""

from functools import lru_cache
from importlib import metadata

from redraft.errors import ConstraintError
from redraft.language import PARTS_OF_SPEECH

VERSION = metadata.version("lemminflect")


@lru_cache(maxsize=1 << 14)
def forms(lemma: str, pos: str | None, what: str) -> tuple[str, ...]:
    """The forms of a lemma as a part of speech, or as any; the lemma comes first. ``what`` names it in errors.

    A word that is not in the dictionary is inflected by rule, if its part of speech is given.
    """
    from lemminflect import getAllInflections, getAllInflectionsOOV  # type: ignore[import-untyped]

    known = getAllInflections(lemma)
    found = getAllInflections(lemma, upos=pos) if pos else known
    if not found and not known and pos:
        found = getAllInflectionsOOV(lemma, pos)
    if not found:
        raise ConstraintError(f"{what}: {_why_unknown(lemma, pos if known else None)}")
    return tuple(dict.fromkeys([lemma, *(form for tag in sorted(found) for form in found[tag])]))


def _why_unknown(word: str, pos: str | None) -> str:
    from lemminflect import getAllLemmas

    if pos is not None:
        return f"{word!r} has no form as {pos}; leave {pos} out"
    if lemmas := sorted({one for several in getAllLemmas(word).values() for one in several} - {word}):
        return f"{word!r} is a form of another word; write {' or '.join(f'{one}~' for one in lemmas)}"
    return f"no forms of {word!r} are known; say what it is, as in {word}~NOUN, or list them: {word}|..."


@lru_cache(maxsize=1 << 16)
def family(word: str) -> frozenset[str]:
    """The lowercased word with all forms of all words that it may be a form of, for checking texts."""
    from lemminflect import getAllInflections, getAllInflectionsOOV, getAllLemmas

    own = word.lower()
    lemmas = {own, *(lemma for several in getAllLemmas(own).values() for lemma in several)}
    found = {own, *lemmas}
    for lemma in lemmas:
        known = getAllInflections(lemma)
        # Not in the dictionary: inflect by rule, as a noun and as a verb.
        tables = [known] if known else [getAllInflectionsOOV(lemma, pos) for pos in PARTS_OF_SPEECH[:2]]
        found |= {form.lower() for table in tables for several in table.values() for form in several}
    return frozenset(found)

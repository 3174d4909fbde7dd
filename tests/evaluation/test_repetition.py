import pytest

from redraft.evaluation.repetition import repeats, repetition

# sentence, clauses to the letter, clauses of the content variant
TABLE = [
    ("home home home .", set(), set()),  # three times is not more than three
    ("home a home b home c home .", {"unigram"}, {"unigram"}),
    ("the a the b the c the .", {"unigram"}, set()),  # the letter of the rule counts articles
    ("x , y , z , v , w .", {"unigram"}, set()),  # and commas
    ("to go x to go y to go .", {"bigram"}, {"bigram"}),
    ("to go x to go y .", set(), set()),  # twice is not more than two
    ("of the x of the y of the .", {"bigram"}, set()),
    ("one of the x one of the .", {"trigram"}, set()),
    ("old home market x old home market .", {"trigram"}, {"trigram"}),
    ("go go go go go .", {"unigram", "bigram", "trigram"}, {"unigram", "bigram", "trigram"}),
    ("", set(), set()),
]


@pytest.mark.parametrize(("sentence", "literal", "content"), TABLE)
def test_clauses(sentence, literal, content):
    clauses = ("unigram", "bigram", "trigram")
    assert {clause for clause in clauses if repeats(sentence.split(), clause)} == literal
    assert {clause for clause in clauses if repeats(sentence.split(), clause, content=True)} == content


def test_percentages_by_hand():
    values = {metric.name: metric.value for metric in repetition([row[0].split() for row in TABLE[:10]])}
    assert values == {
        "repetition_unigram": 40,
        "repetition_bigram": 30,
        "repetition_trigram": 30,
        "repetition_any": 80,
        "repetition_unigram_content": 20,
        "repetition_bigram_content": 20,
        "repetition_trigram_content": 20,
        "repetition_any_content": 40,
    }


def test_signatures_name_rule_and_variant():
    settings = {metric.name: metric.settings for metric in repetition([["a"]])}
    assert settings["repetition_bigram"] == {"rule": "2-gram>2", "words": "all"}
    assert settings["repetition_any_content"] == {"rule": "1-gram>3,2-gram>2,3-gram>1", "words": "content"}

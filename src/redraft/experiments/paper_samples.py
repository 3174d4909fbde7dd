"""The sentences that the paper prints in Tables 3, 8 and 9, as data, with the tokenisation of the paper."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Printed:
    """An input, its reference sentence, and the sentences of the paper's systems."""

    id: str
    given: Mapping[str, Any]  # keywords or template, as redraft reads inputs
    reference: str
    outputs: Mapping[str, str]  # sentences by row
    has_human: bool = True  # whether the paper prints the reference

    @property
    def input(self) -> dict[str, Any]:
        return {"id": self.id, **self.given, "reference": self.reference}


def _keywords(identity: str, keywords: str, reference: str, **outputs: str) -> Printed:
    return Printed(identity, {"keywords": keywords.split()}, reference, _named(outputs))


def _template(identity: str, template: str, lengths: list[int], reference: str, **outputs: str) -> Printed:
    return Printed(identity, {"template": template, "lengths": lengths}, reference, _named(outputs))


_TITLES = {
    "sep": "sep-B/F",
    "asyn": "asyn-B/F",
    "gbs": "GBS",
    "cgmh": "CGMH",
    "flm": "FLM",
    "blm": "BLM",
    "bayesian": "Bayesian MCMC",
    "tigs1": "TIGS (strategy 1)",
    "tigs2": "TIGS (strategy 2)",
    "l": "L-MCMC",
    "lc": "L-MCMC-C",
    "xc": "X-MCMC-C",
}


def _named(outputs: Mapping[str, str]) -> dict[str, str]:
    return {_TITLES[key]: sentence for key, sentence in outputs.items()}


# The paper does not print a reference here. This is the sentence of its Table 9 that holds these words.
TABLE3 = (
    replace(
        _keywords(
            "table3-1",
            "person home problems depression",
            "Moving them from person to person, home to home, can induce problems such as anxiety and depression.",
            gbs="A person familiar with the matter said : `` The problems of depression are home to the people of the "
            "United States .",
            cgmh="The person 's head of home health problems have sparked depression .",
            lc="The average person who 's lost money since he was a child at home has no problems with depression .",
            xc="One person was sent home with mental health problems and severe depression .",
        ),
        has_human=False,
    ),
)

TABLE8 = (
    _keywords(
        "table8-1",
        "view",
        "Victims commissioner Brendan McAllister has asked the Policing Board for its view on the transfer.",
        sep='He said : `` There is a point of view , " he said in a statement .',
        asyn="He said : `` There is a point of view , \" he told BBC Radio 4 's Today programme .",
        gbs="`` It 's a good thing to do , \" he said , adding that he did not have a view of the situation .",
        cgmh="If this case ends up or next to the view",
        lc="What is the world 's view of the global economy ?",
        xc="The consensus view is that this has not been achieved .",
    ),
    _keywords(
        "table8-2",
        "promoting energy",
        "They ranged from promoting clean energy and overseas infrastructure projects to attracting medical tourists "
        "and foreign firms.",
        gbs='`` We are promoting energy efficiency , " said <UNK> <UNK> , a professor of economics at the University '
        "of California , Berkeley .",
        cgmh="But it is now widely criticized for promoting the energy",
        lc="He is also committed to promoting innovation in renewable energy projects .",
        xc="They are expected to talk about curbing carbon emissions and promoting energy efficiency .",
    ),
    _keywords(
        "table8-3",
        "experience feels dream",
        '"This whole experience feels like a dream come true....',
        gbs="`` It feels like it 's a dream , \" he said , adding that he had no experience in the world 's history .",
        cgmh="In his experience , he feels he can 't find his own dream",
        lc="The whole experience feels like a very different story -- a man 's dream .",
        xc="The whole experience feels like a dream to me .",
    ),
    _keywords(
        "table8-4",
        "seized movement party taken",
        "They have seized on a common claim: A dangerous fringe movement, the tea party, has taken over the Republican "
        "Party.",
        gbs="The party has taken part in a series of meetings with the opposition movement , which has been seized in "
        "recent years .",
        cgmh="He has also seized his head off his movement toward his own party and has taken",
        lc="The MDC has seized power , and the Islamist movement 's main opposition party has been taken over .",
        xc="The two seized rebel movement leaders and the local party leader were also taken to police stations .",
    ),
    _keywords(
        "table8-5",
        "talking something analysts planning",
        "But it is unlikely he'll be talking to victims, something Vatican analysts had suggested was a possibility in "
        "the early planning stages of the U.S. trip.",
        gbs="`` I think it 's something we 're talking about , \" said <UNK> , who is planning to meet analysts on "
        "Wednesday .",
        cgmh="After talking for something that happened , some analysts think it is planning",
        lc="The first meeting came on Wednesday , after talking about something that some analysts were planning .",
        xc="They are talking about something that some analysts have been planning for for several years .",
    ),
)

TABLE9 = (
    _template(
        "table9-1",
        "Moving ___ from ___ induce problems ___ depression ___",
        [1, 9, 4, 1],
        "Moving them from person to person, home to home, can induce problems such as anxiety and depression.",
        flm="Moving forward from the end of the year , he said that induce problems could be used for depression .",
        blm="Moving away from embryonic stem cells , which can be used to induce problems , heart disease and "
        "depression .",
        bayesian="Moving down from the top that you say is that they can induce problems as a result of depression .",
        tigs1="Moving away from actor David James Jones to work with music to induce problems in modern film classic "
        "depression shows",
        tigs2="Moving away from the United States , the United States has been induce problems in the past major "
        "depression .",
        l="Moving away from the health care system that does not induce problems can cause a serious depression .",
        lc="Moving away from the U.S. banking system can also be used to induce problems related to global economic "
        "depression .",
    ),
    _template(
        "table9-2",
        "Opponents ___ say U.S. ___ suffer under the climate bill ___ trade ___ changes ___",
        [3, 2, 2, 1, 1],
        "Opponents of the tariff say U.S. manufacturing would suffer under the climate bill regardless of trade policy "
        "changes.",
        flm="Opponents of the bill say U.S. banks are suffer under the climate bill . <EOS> trade and changes to",
        blm="Opponents are expected to say U.S. does not suffer under the climate bill , to trade the changes .",
        bayesian="Opponents are expected to say U.S. lawmakers might suffer under the climate bill in the trade of "
        "changes .",
        tigs1="Opponents Michael Jackson supporters say U.S. car owners suffer under the climate bill plan to trade "
        "the changes government",
        tigs2="Opponents of the bill say U.S. banks will suffer under the climate bill , which trade on changes in",
        l="Opponents say U.S. citizens will suffer under the climate bill and also trade the changes .",
        lc="Opponents say U.S. companies will suffer under the climate bill and make trade changes .",
    ),
    _template(
        "table9-3",
        "The doctor said ___ the newspaper reported .",
        [19],
        "The doctor said it was unclear whether she will walk again, even though some people can recover from such "
        "injuries, the newspaper reported.",
        flm="The doctor said there was no evidence that he had been involved in the incident . <EOS> . <EOS> . <EOS> "
        ", the newspaper reported .",
        blm="The doctor said the company posted a net profit of more than $ 1 billion by the end of last year , the "
        "newspaper reported .",
        bayesian="The doctor said that a 21-year-old man whose body was not taken to the hospital would have suffered "
        "from stab wounds , the newspaper reported .",
        tigs1="The doctor said two clothing company Medical Center 's National Park Service found pictures of pop star "
        "Michael Jackson Ray Allen 18 the newspaper reported .",
        tigs2="The doctor said the boy was not a man who was not involved in the incident . <EOS> , with the statement "
        "the newspaper reported .",
        l="The doctor said he was not too worried , the newspaper reported .",
        lc="The doctor said it was a possible suicide attack , but it was not immediately clear what happened at the "
        "time , the newspaper reported .",
    ),
)

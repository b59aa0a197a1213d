"""Input for `lake demo`: chats, agent runs, synthetic rows, web pages and a benchmark, with planted errors.

Everything is drawn from one seed, so two runs give equal bytes. What was planted is returned as the truth, in the words
of the input (file and line), and never looked up in the lake: the demo compares the lake's tables with it both ways.
"""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = (
    *("Ada", "Bao", "Chidi", "Dana", "Emre", "Farid", "Grete", "Hana", "Ines", "Jonas"),
    *("Kofi", "Lena", "Mira", "Noor", "Olga", "Piet", "Quinn", "Rosa", "Sami", "Tove"),
)
THINGS = ("kettle", "bicycle lamp", "desk chair", "rain jacket", "headset", "water filter", "suitcase", "tripod")
FAULTS = ("leaks", "flickers", "squeaks", "lost its zip", "hums", "drips", "will not close", "wobbles")
PLACES = ("Porto", "Gdansk", "Utrecht", "Bergen", "Lyon", "Graz", "Malmo", "Cork", "Turin", "Ghent")
TOPICS = ("caching", "retries", "logging", "rate limits", "pagination", "webhooks", "idempotency", "time zones")
PROBLEMS = (
    "On a farm {name} stacks {a} crates of {b} pears each and gives {c} of them to the geese; how many pears are left?",
    "{name} knits {b} rows an hour for {a} hours, then unpicks {c} wrong ones. How many rows has the scarf?",
    "A ferry with {a} benches seats {b} people on every bench, but {c} seats broke. {name} asks how many can sit.",
    "{name} copies {b} pages of a letter for each of {a} aunts but spoils {c} sheets; how many good pages go out?",
    "In the cellar {name} counts {a} shelves holding {b} jars apiece, of which {c} are cracked; how many are whole?",
    "Each of {a} bell ringers pulls the rope {b} times, only {name} misses {c} pulls. How often do the bells sound?",
    "{name} plants {a} beds with {b} tulip bulbs per bed before a mole eats {c} bulbs; how many can still bloom?",
    "A choir of {a} voices sings {b} songs each, yet {name} has a cold and skips {c} songs. How many parts are sung?",
    "For the fair {name} fills {a} bags with {b} marbles every time and loses {c} marbles on the way; how many arrive?",
    "{a} carriages carry {b} trunks each across the pass, until {name} throws {c} trunks off. How many get over?",
)
SYSTEM = "You are the support agent of a shop for household goods. Answer in one or two sentences."
LATIN_1 = "São João é festa; José comeu pão de ló, bebeu café e não saiu da praça até amanhecer em Guimarães.\n" * 6


@dataclass
class Truth:
    """What was planted. A place is (source, key); the key is `file:line`, a page's path, or a URL.

    Attributes:
        landed: records per source that can be read.
        rejected: records per source that cannot.
        skipped: records per source of types that do not land.
        copies: groups of equal examples; of each group one stays.
        contaminated: place to the number (from 1) of the benchmark item that stands in it.
        dropped: place to the reason of every other planted drop.
        encodings: place of a text that is not UTF-8, to words that it must hold once decoded.
        sft: examples of agent runs that may be imitated (reward 1).
        unpaired: all agent runs.
    """

    landed: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    copies: list[set[tuple[str, str]]] = field(default_factory=list)
    contaminated: dict[tuple[str, str], int] = field(default_factory=dict)
    dropped: dict[tuple[str, str], str] = field(default_factory=dict)
    encodings: dict[tuple[str, str], str] = field(default_factory=dict)
    sft: int = 0
    unpaired: int = 0


def make(folder: Path, seed: int = 7) -> Truth:
    """Write the input files.

    Args:
        folder: where to; made if it is not there.
        seed: of everything that is drawn.

    Returns:
        What was planted.
    """
    rng, truth = random.Random(seed), Truth()
    items = _benchmark(folder, rng, truth)
    chats = _support(folder, rng, truth, items)
    _agents(folder, rng, truth)
    _forum(folder, rng, truth, chats)
    _alpaca(folder, rng, truth, items)
    _pairs(folder, rng, truth)
    _docs(folder, rng, truth, items)
    _crawl(folder, rng, truth)
    return truth


def _unique(make_one: Callable[[], Any], count: int) -> list[Any]:
    """Draw until there are `count` different things, so that no copy is there by chance."""
    seen: dict[str, Any] = {}
    while len(seen) < count:
        thing = make_one()
        seen.setdefault(json.dumps(thing), thing)
    return list(seen.values())


def _order(rng: random.Random) -> str:
    return f"{rng.choice('ABCDEFGH')}{rng.randrange(10_000, 99_999)}"


def _benchmark(folder: Path, rng: random.Random, truth: Truth) -> list[str]:
    """Word problems, each of more than 13 words and no two with 13 words in common."""
    rows = []
    for name, problem in zip(rng.sample(NAMES, len(PROBLEMS)), PROBLEMS, strict=True):
        a, b, c = rng.randrange(12, 90), rng.randrange(3, 11), rng.randrange(2, 11)
        rows.append({"question": problem.format(name=name, a=a, b=b, c=c), "answer": str(a * b - c)})
    _write(folder / "benchmark" / "word_problems.jsonl", _lines(rows))
    truth.landed["problems"] = len(rows)
    return [row["question"] for row in rows]


def _support(folder: Path, rng: random.Random, truth: Truth, items: list[str]) -> list[list[dict[str, str]]]:
    """OpenAI chats, gzipped: two lines that cannot be read, three copies, two lines that hold a benchmark item."""

    def chat() -> list[dict[str, str]]:
        order, thing, fault = _order(rng), rng.choice(THINGS), rng.choice(FAULTS)
        question = f"Hello, this is {rng.choice(NAMES)}. The {thing} from order {order} {fault}. What can I do?"
        answer = f"I am sorry about the {thing}. I have sent a new one for order {order} to {rng.choice(PLACES)}."
        return [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ]

    chats = _unique(chat, 60)
    lines = [json.dumps({"messages": c}).encode() for c in chats]
    for number, item in ((11, 3), (42, 7)):  # line, item
        asked = f"My daughter has this for homework: {items[item - 1]} Can you help her?"
        lines[number - 1] = json.dumps({"messages": [chats[number - 1][0], _turn("user", asked), _turn()]}).encode()
        truth.contaminated["support", f"support.jsonl:{number}"] = item
    spaced = json.dumps({"messages": [{**m, "content": m["content"].replace(". ", ".  ")} for m in chats[4]]}).encode()
    lines += [lines[1], spaced, b'{"messages": [{"role": "user", "conte', lines[1], b'{"messages": "\xff\xfe"}']
    truth.copies += [
        {("support", f"support.jsonl:{n}") for n in (2, 61, 64)},
        {("support", f"support.jsonl:{n}") for n in (5, 62)},
    ]
    # gzip would write the time into its head, and two runs would differ.
    _write(folder / "traces" / "support.jsonl.gz", gzip.compress(b"\n".join(lines) + b"\n", mtime=0))
    truth.landed["support"], truth.rejected["support"] = 63, 2
    return chats


def _turn(role: str = "assistant", content: str = "I am here for orders only, sorry.") -> dict[str, str]:
    return {"role": role, "content": content}


def _agents(folder: Path, rng: random.Random, truth: Truth) -> None:
    """Agent runs with tool calls in the shape of tau-bench; some earned their reward."""
    runs = []
    for number, order in enumerate(_unique(lambda: _order(rng), 24)):
        state = rng.choice(("sent", "packed", "paid", "returned"))
        call = {"id": f"call_{number}", "type": "function"}
        call["function"] = {"name": "get_order", "arguments": json.dumps({"order": order})}  # type: ignore[assignment]
        turns: list[dict[str, Any]] = [
            _turn("system", "You may look orders up. Never guess the state of an order."),
            _turn("user", f"{rng.choice(NAMES)} here, where is my order {order}?"),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"call_{number}",
                "name": "get_order",
                "content": f'{{"state": "{state}"}}',
            },
            _turn("assistant", f"Your order {order} is {state}."),
        ]
        reward = float(rng.random() < 0.5)
        truth.sft += int(reward)
        runs.append({"task_id": number, "trial": 0, "reward": reward, "info": {}, "traj": turns})
    _write(folder / "traces" / "agents.json", json.dumps(runs, indent=1).encode())
    truth.landed["agents"] = truth.unpaired = len(runs)


def _forum(folder: Path, rng: random.Random, truth: Truth, chats: list[list[dict[str, str]]]) -> None:
    """ShareGPT conversations, two of them chats of the shop's log: copies across sources and formats."""

    def conversation() -> dict[str, Any]:
        topic, place = rng.choice(TOPICS), rng.choice(PLACES)
        human = f"{rng.choice(NAMES)} asks from {place}: how would you explain {topic} to a new colleague?"
        answer = (
            f"Start from what breaks without {topic}, then show the smallest example, {rng.randrange(3, 40)} lines."
        )
        return {"conversations": [{"from": "human", "value": human}, {"from": "gpt", "value": answer}]}

    rows = _unique(conversation, 30)
    speakers = ("system", "human", "gpt")
    for row, line in ((7, 20), (19, 33)):
        shared = [{"from": s, "value": m["content"]} for s, m in zip(speakers, chats[line - 1], strict=True)]
        rows[row - 1] = {"conversations": shared}
        truth.copies.append({("forum", f"forum.json:{row}"), ("support", f"support.jsonl:{line}")})
    _write(folder / "synthetic" / "forum.json", json.dumps(rows, ensure_ascii=False).encode())
    truth.landed["forum"] = len(rows)


def _alpaca(folder: Path, rng: random.Random, truth: Truth, items: list[str]) -> None:
    """Alpaca rows as one JSON list: three copies, an answer that gives a benchmark item away, an empty row."""

    def row() -> dict[str, str]:
        a, b = rng.randrange(100, 999), rng.randrange(100, 999)
        return {"instruction": "Add the two numbers.", "input": f"{a} and {b}", "output": f"{a} + {b} = {a + b}."}

    rows = _unique(row, 50)
    rows[29] = {"instruction": "Write a word problem.", "input": "", "output": f"Here is one. {items[5]}"}
    rows[35] = {"instruction": "", "input": "", "output": ""}
    rows += [rows[0], rows[9], rows[0]]
    truth.contaminated["sums", "sums.json:30"] = 6
    truth.dropped["sums", "sums.json:36"] = "empty"
    truth.copies += [{("sums", f"sums.json:{n}") for n in (1, 51, 53)}, {("sums", f"sums.json:{n}") for n in (10, 52)}]
    _write(folder / "synthetic" / "sums.json", json.dumps(rows, indent=2).encode())
    truth.landed["sums"] = len(rows)


def _pairs(folder: Path, rng: random.Random, truth: Truth) -> None:
    """Preference pairs: one copy, and one whose two sides are equal."""

    def pair() -> dict[str, str]:
        thing, days = rng.choice(THINGS), rng.randrange(2, 28)
        prompt = f"{rng.choice(NAMES)} from {rng.choice(PLACES)} wants to return a {thing} after {days} days. Reply."
        return {"prompt": prompt, "chosen": f"Of course, {30 - days} days are left to send it.", "rejected": "No."}

    rows = _unique(pair, 20)
    rows[12]["rejected"] = rows[12]["chosen"]
    rows.append(rows[3])
    truth.dropped["pairs", "pairs.jsonl:13"] = "equal_pair"
    truth.copies.append({("pairs", "pairs.jsonl:4"), ("pairs", "pairs.jsonl:21")})
    _write(folder / "synthetic" / "pairs.jsonl", _lines(rows))
    truth.landed["pairs"] = len(rows)


def _docs(folder: Path, rng: random.Random, truth: Truth, items: list[str]) -> None:
    """Markdown pages and a Latin-1 text; two equal pages, one with a benchmark item; pages of a forbidden licence."""
    for number, topic in enumerate(TOPICS):
        body = f"# {topic.title()}\n\n" + "".join(
            f"{rng.choice(NAMES)} keeps {topic} simple in {place}: rule {rng.randrange(1000)} comes first.\n\n"
            for place in rng.sample(PLACES, 6)
        )
        if number == 2:
            body += f"## A break\n\n{items[8]}\n"
            truth.contaminated["docs", f"guide/{number}.md"] = 9
        _write(folder / "web" / "docs" / "guide" / f"{number}.md", body.encode())
    copied = (folder / "web" / "docs" / "guide" / "5.md").read_bytes()
    _write(folder / "web" / "docs" / "old" / "5.md", copied)
    truth.copies.append({("docs", "guide/5.md"), ("docs", "old/5.md")})
    _write(folder / "web" / "docs" / "festa.txt", LATIN_1.encode("latin-1"))
    truth.encodings["docs", "festa.txt"] = "São João é festa; José comeu pão de ló"
    truth.landed["docs"] = len(TOPICS) + 2
    for number in range(3):
        text = f"Poem {number} of {rng.choice(NAMES)}, all rights reserved but reading, written in {PLACES[number]}.\n"
        _write(folder / "web" / "poems" / f"{number}.txt", text.encode())
        truth.dropped["poems", f"{number}.txt"] = "licence_not_allowed"
    truth.landed["poems"] = 3


def _crawl(folder: Path, rng: random.Random, truth: Truth) -> None:
    """A WARC file: pages, the request of each (a type that does not land), and a last record that is cut off."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    out = io.BytesIO()
    writer = WARCWriter(out, gzip=False)
    for number, (topic, place) in enumerate(zip(TOPICS, PLACES, strict=False)):
        url = f"https://example.org/{number}"
        date = {"WARC-Date": f"2026-01-0{number + 1}T00:00:00Z", "WARC-Record-ID": f"<urn:uuid:{number}>"}
        sentences = "".join(
            f"<p>{n} of {place} writes about {topic}, note {rng.randrange(10_000)}.</p>" for n in rng.sample(NAMES, 6)
        )
        html = f"<html><head><title>{topic}</title></head><body><h1>{topic}</h1>{sentences}</body></html>".encode()
        response = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1")
        request = StatusAndHeaders(f"GET /{number} HTTP/1.1", [("Host", "example.org")], is_http_request=True)
        for kind, headers, body in (("request", request, b""), ("response", response, html)):
            writer.write_record(
                writer.create_warc_record(
                    url, kind, payload=io.BytesIO(body), http_headers=headers, warc_headers_dict=dict(date)
                )
            )
    # The last 200 bytes are missing, so its last record is cut off: one more reject and one page less.
    _write(folder / "web" / "crawl.warc.gz", gzip.compress(out.getvalue()[:-200], mtime=0))
    truth.landed["crawl"], truth.skipped["crawl"], truth.rejected["crawl"] = len(TOPICS) - 1, len(TOPICS), 1


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def sources() -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Yield (path below the folder, kind, source, further options) of each landing, as the demo carries them out."""
    yield "benchmark/word_problems.jsonl", "benchmark", "problems", ("--suite", "word_problems", "--split", "test")
    yield "traces/support.jsonl.gz", "traces", "support", ("--license", "CC0-1.0")
    yield "traces/agents.json", "traces", "agents", ("--license", "CC0-1.0")
    yield "synthetic/forum.json", "synthetic", "forum", ("--generator", "demo", "--seed", "7")
    yield "synthetic/sums.json", "synthetic", "sums", ("--generator", "demo", "--prompt-id", "sums-1")
    yield "synthetic/pairs.jsonl", "synthetic", "pairs", ("--generator", "demo")
    yield "web/docs", "web", "docs", ("--license", "CC-BY-4.0")
    yield "web/poems", "web", "poems", ("--license", "CC-BY-NC-4.0")
    yield "web/crawl.warc.gz", "web", "crawl", ()

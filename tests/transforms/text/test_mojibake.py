"""UTF-8 that was misread, held to the texts that it was before: the Universal Declaration in 162 languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.text import mojibake
from transforms.text.mojibake import undo


def as_browsers_do(data: bytes) -> str:
    return "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in data)


def reader(codec: str) -> Callable[[bytes], str]:
    return as_browsers_do if codec == "browser" else lambda data: data.decode(codec)


def misread(text: str, codec: str, times: int = 1) -> str:
    for _ in range(times):
        text = reader(codec)(text.encode())
    return text


def texts(data: Path) -> Iterator[str]:
    for file in sorted((data / "web/udhr/udhr2").iterdir()):
        text = file.read_bytes().decode().removeprefix("\ufeff").replace("\r\n", "\n")
        if not text.isascii():
            yield text


@pytest.mark.integration
@pytest.mark.parametrize("codec", ["latin-1", "browser", "cp1252", "cp1254"])
@pytest.mark.parametrize("times", [1, 2])
def test_every_whole_text_comes_back(data: Path, codec: str, times: int) -> None:
    tried = 0
    for text in texts(data):
        try:
            bad = misread(text, codec, times)
        except UnicodeDecodeError:  # the codec has no character for one of its bytes
            continue
        tried += 1
        assert undo(bad) == text
    assert tried >= 52


@pytest.mark.parametrize(
    ("codec", "tried", "right"),
    [
        ("latin-1", 1080, 1077),
        ("browser", 1080, 1057),
        ("cp1252", 639, 616),
        ("cp1250", 617, 349),
        ("cp1251", 927, 149),
        ("mac_roman", 1080, 656),
    ],
)
def test_a_paragraph_alone_comes_back_or_stays_as_it_is(data: Path, codec: str, tried: int, right: int) -> None:
    results = []
    for text in texts(data):
        for paragraph in [line for line in text.splitlines() if len(line) > 20 and not line.isascii()][:8]:
            try:
                bad = misread(paragraph, codec)
            except UnicodeDecodeError:
                continue
            results.append((undo(bad) == paragraph, undo(bad) == bad))
    assert len(results) == tried
    assert sum(is_right for is_right, _ in results) >= right
    # Of the other encodings a part of a paragraph may be all that can be told.
    if codec in ("latin-1", "cp1252"):
        assert all(is_right or is_left for is_right, is_left in results)


@pytest.mark.parametrize(
    "dress",
    [
        str,
        str.upper,
        "{}…".format,
        "“{}”".format,
        lambda line: f"«{line.upper()}»",
        lambda line: f"„{line.upper()}“",
        lambda line: f"{line.upper()}™ 5 €",
        lambda line: "’".join(line.split()),
        lambda line: " ".join(f"«{word}»" for word in line.split()),
        lambda line: " ".join(f"‘{word.upper()}’" for word in line.split()),
    ],
)
def test_no_sound_line_changes(data: Path, dress: Callable[[str], str]) -> None:
    lines = [dress(line) for text in texts(data) for line in text.splitlines() if len(line) >= 5]
    assert len(lines) > 20_000
    assert [line for line in lines if undo(line) != line] == []


@pytest.mark.parametrize(
    "good",
    [
        "AMANHÃ” É “IRMÔ, SÃO JOÃO… “MAÇÔ",
        "A MANHÃ, a irmã e o pão. Ã é uma letra.",
        "Â la carte",
        "The bytes show up as â€ in the log.",
        "The sequence “â€™” is an apostrophe that was misread.",
        'FIX = {"Ã©": "é", "Ã¨": "è", "â€™": "’"}',
        "fix(`Ã©`)",
        "√2 + √3, √±1 and √(x) ≥ 0; √¥ √∂x √µ",
        "├── src\n│   └── main.py\n",
        "HOTĂRÂREA, ŢARĂ “ŢARĂ” Ă…",
        "control\x92characters and \x80\x83 stay",
        "&eacute; ﬁ ＦＵＬＬ “curly”",
    ],
)
def test_what_only_looks_like_mojibake_stays(good: str) -> None:
    assert undo(good) == good


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("SÃ£o Paulo", "São Paulo"),
        ("CAFÃ‰ HÃ”TEL KÃ–LN", "CAFÉ HÔTEL KÖLN"),
        ("first.Â Then", "first.\xa0Then"),
        ("18 U. S. C. Â§ 371", "18 U. S. C. § 371"),
        ("KOEIâ€™s tactical", "KOEI’s tactical"),
        ("caf√© ‚Äì d√©j√† vu", "café – déjà vu"),
        ("РїСЂРёРІРµС‚ вЂ“ РјРёСЂ", "привет – мир"),
        ("ĂˇrvĂ­ztĹ±rĹ‘", "árvíztűrő"),
        ("Füße und Schuhe\nFÃ¼ÃŸe und Schuhe\n日本語\n", "Füße und Schuhe\nFüße und Schuhe\n日本語\n"),
        ('the letter "Ã©" of cafÃ©', 'the letter "é" of café'),
        # The step from ISO-8859-1 to windows-1252, which ftfy would take next, is none of ours.
        (misread("é\x92s", "latin-1"), "é\x92s"),
    ],
)
def test_mojibake_of_one_line_is_put_right(bad: str, good: str) -> None:
    assert undo(bad) == good
    assert undo(good) == good


def test_a_text_without_a_sign_never_reaches_ftfy(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str, *_: object) -> tuple[str, list[object]]:
        raise AssertionError(text[:80])

    monkeypatch.setattr(mojibake.ftfy, "fix_encoding_and_explain", refuse)
    for text in texts(data):
        undo(text)
    with pytest.raises(AssertionError):
        undo("FuÃŸ")


@given(st.text(st.one_of(st.sampled_from("ÃÂâ€™©\x92\x80ß √Ä‚é" + '"`'), st.characters()), max_size=60))
def test_any_characters_give_a_text_and_the_same_twice(text: str) -> None:
    assert undo(text) == undo(text)

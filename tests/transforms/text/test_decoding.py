"""Codecs found from bytes, held to the file names of the Universal Declaration and to its texts in UTF-8."""

from __future__ import annotations

import codecs
import itertools
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transforms.text.decoding import UNDECODABLE, decode

# What the name's last part means (NLTK writes the family, not the codec): the codecs that are right for it.
FAMILIES = {
    "Latin2": {"windows-1250", "iso-8859-2"},
    "Latin2-err": {"windows-1250", "iso-8859-2"},
    "Cyrillic": {"windows-1251", "iso-8859-5", "koi8-r", "ptcp154"},
    "Greek": {"windows-1253", "iso-8859-7"},
    "Hebrew": {"windows-1255", "iso-8859-8"},
    "Arabic": {"windows-1256", "iso-8859-6"},
    "Turkish": {"windows-1254", "iso-8859-9"},
    "Baltic": {"windows-1257", "iso8859-4", "iso-8859-13"},
    "GB2312": {"gb18030", "gb2312"},
    "HZ": {"hz"},
    "EUC": {"euc-jp"},
    "JIS": {"iso-2022-jp"},
    "SJIS": {"cp932", "shift_jis"},
    "Unicode": {"utf-16-le"},
    "UTF8~": {"utf-8"},
    "T61": {"t.61"},
    "Amahuaca": {"windows-1252", "utf-8"},
}
# Fonts, and two files whose letters were replaced by question marks before anybody had them.
NO_CODEC = {
    "Abkhaz-Cyrillic+Abkh",
    "Amharic-Afenegus6..60375",
    "Armenian-DallakHelv",
    "Azeri_Azerbaijani_Cyrillic-Az.Times.Cyr.Normal0117",
    "Azeri_Azerbaijani_Latin-Az.Times.Lat0117",
    "Bhojpuri-Agra",
    "Burmese_Myanmar-WinResearcher",
    "Magahi-Agra",
    "Navaho_Dine-Navajo-Navaho-font",
    "Tigrinya_Tigrigna-VG2Main",
    "Vietnamese-TCVN",
    "Vietnamese-VIQR",
    "Vietnamese-VPS",
}
# Those of them that are ASCII or nearly, which only their names tell.
ASCII_FONTS = {
    "Amharic-Afenegus6..60375",
    "Bhojpuri-Agra",
    "Burmese_Myanmar-WinResearcher",
    "Magahi-Agra",
    "Navaho_Dine-Navajo-Navaho-font",
}
# The same text in UTF-8, and the share of the legacy text's letter pairs that stand in it.
SIBLINGS = {
    "Arabic_Alarabia-Arabic": ("arb", 0.99),
    "Bosnian_Bosanski-Latin2": ("bos_latn", 0.99),
    "Bulgarian_Balgarski-Cyrillic": ("bul", 0.96),
    "Chinese_Mandarin-GB2312": ("cmn_hans", 0.97),
    "Chinese_Mandarin-HZ": ("cmn_hans", 0.97),
    "Croatian_Hrvatski-Latin2": ("hrv", 0.99),
    "Czech_Cesky-Latin2": ("ces", 0.99),
    "Esperanto-T61": ("epo", 0.99),
    "Greek_Ellinika-Greek": ("ell_monotonic", 0.99),
    "Hebrew_Ivrit-Hebrew": ("heb", 0.97),
    "Hungarian_Magyar-Latin2": ("hun", 0.99),
    "Hungarian_Magyar-Unicode": ("hun", 0.99),
    "Japanese_Nihongo-EUC": ("jpn", 0.99),
    "Japanese_Nihongo-JIS": ("jpn", 0.99),
    "Japanese_Nihongo-SJIS": ("jpn", 0.99),
    "Kazakh-Cyrillic": ("kaz", 0.90),
    "Lithuanian_Lietuviskai-Baltic": ("lit", 0.99),
    "Mongolian_Khalkha-Cyrillic": ("khk", 0.84),
    "Polish_Polski-Latin2": ("pol", 0.99),
    "Romanian_Romana-Latin2": ("ron", 0.98),
    "Russian_Russky-Cyrillic": ("rus", 0.99),
    "Russian_Russky-UTF8~": ("rus", 0.99),
    "Serbian_Srpski-Latin2": ("srp_latn", 0.99),
    "Slovak_Slovencina-Latin2": ("slk", 0.99),
    "Slovenian_Slovenscina-Latin2": ("slv", 0.99),
    "Turkish_Turkce-Turkish": ("tur", 0.99),
    "Ukrainian-Cyrillic": ("ukr", 0.99),
}


CZECH = "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. „Šárka“ žije v řece. "


def legacy(data: Path) -> list[Path]:
    files = sorted((data / "web/udhr/udhr").iterdir())
    assert len(files) == 52
    return files


def letter_pairs(text: str) -> Counter[str]:
    text = "".join(text.lower().split()).translate({ord("ş"): "ș", ord("ţ"): "ț"})  # Romanian before 1993 and after
    return Counter(a + b for a, b in itertools.pairwise(text))


def test_each_legacy_file_has_the_codec_of_its_name_or_none(data: Path) -> None:
    wrong = {}
    for file in legacy(data):
        found = decode(file.read_bytes(), (), file.name).encoding
        family = FAMILIES.get(file.name.split("-", 1)[-1], set())
        if (found is None) != (file.name in NO_CODEC) or (found is not None and found not in family):
            wrong[file.name] = found
    assert wrong == {}


def test_the_bytes_alone_tell_all_but_the_ascii_fonts(data: Path) -> None:
    differing = {
        file.name for file in legacy(data) if decode(file.read_bytes()) != decode(file.read_bytes(), (), file.name)
    }
    assert differing == ASCII_FONTS


def test_each_text_is_what_its_codec_gives(data: Path) -> None:
    for file in legacy(data):
        found = decode(file.read_bytes(), (), file.name)
        if found.encoding in (None, "t.61"):
            continue
        raw = file.read_bytes()
        for bom in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE):
            raw = raw.removeprefix(bom)
        # A file cut inside a character is one whose last bytes do not decode.
        assert found.text == raw.decode(found.encoding, "ignore"), file.name


@pytest.mark.parametrize("name", SIBLINGS)
def test_each_text_has_the_letters_of_the_same_text_in_utf8(data: Path, name: str) -> None:
    sibling, share = SIBLINGS[name]
    found = letter_pairs(decode((data / "web/udhr/udhr" / name).read_bytes()).text)
    known = letter_pairs((data / f"web/udhr/udhr2/{sibling}.txt").read_text("utf-8")[:20_000])
    assert sum(n for pair, n in found.items() if pair in known) >= share * found.total()


def test_every_text_in_utf8_stays_as_it_is(data: Path) -> None:
    files = list((data / "web/udhr/udhr2").iterdir())
    assert len(files) == 162
    for file in files:
        assert decode(file.read_bytes()).text == file.read_bytes().decode("utf-8").removeprefix("\ufeff")


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Съешь же ещё этих мягких французских булок, да выпей чаю. " * 3, "koi8-r"),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю. " * 3, "cp1251"),
        ("Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë", "cp1252"),
        ("여러분 안녕하세요. 오늘은 날씨가 좋습니다. 우리는 산책을 하러 갑니다.", "cp949"),
        ("人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。", "big5"),
        ("すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。", "euc-jp"),
        ("A plain line of text, in UTF-16 without a mark.", "utf-16-be"),
        ("A plain line of text, in UTF-16 without a mark.", "utf-16-le"),
    ],
)
def test_text_of_any_usual_codec_comes_back(text: str, codec: str) -> None:
    assert decode(text.encode(codec)).text == text


def test_what_was_declared_decides_where_it_decodes_cleanly() -> None:
    data = "¿Qué?".encode("iso-8859-15")
    assert decode(data, ("iso-8859-15",)).encoding == "iso-8859-15"
    # A label that leaves control characters is a lie.
    assert decode(CZECH.encode("cp1250"), ("iso-8859-2",)).encoding == "windows-1250"
    assert decode("naïve".encode(), ("iso-8859-1",)).text == "naïve"
    assert decode(b"caf\xe9", ("no-such-charset",)).text == "café"


def test_a_few_broken_bytes_are_replaced_and_recorded() -> None:
    found = decode("Ünïcödé ist überall schön größer".encode() * 3 + b"\xff" + b" end of it")
    assert found.encoding == "utf-8" and found.repairs == ("replaced",)
    assert found.text.count("\ufffd") == 1


def test_bytes_of_a_binary_file_are_undecodable() -> None:
    assert decode(bytes(range(256)) * 8) == UNDECODABLE


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=200))
@example("Tschüß, 你好")
def test_utf8_comes_back_as_it_was(text: str) -> None:
    if not text.startswith("\ufeff") and "~{" not in text:
        assert decode(text.encode()).text == text


@given(st.binary(max_size=400), st.lists(st.text(max_size=12), max_size=2), st.text(max_size=20))
def test_no_bytes_or_labels_raise(data: bytes, declared: list[str], name: str) -> None:
    found = decode(data, tuple(declared), name)
    assert found.encoding is not None or found.text == ""
    assert decode(data, tuple(declared), name) == found

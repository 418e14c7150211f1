"""Images and documents: sizes from headers, prices from the provider's rule."""

import base64
import struct

from hypothesis import given
from hypothesis import strategies as st

from blocks import DocumentPart, ImagePart
from tests._table import for_each
from timeline._models import model_named
from timeline.tokens import counter_for
from timeline.tokens._parts import image_size, image_tokens, pdf_pages

OLD = model_named("claude-sonnet-4-5")
NEW = model_named("claude-sonnet-5-5")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> str:
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return b64(header + b"\x08\x06\0\0\0" + b"pixels" * 50)


def gif(width: int, height: int) -> str:
    return b64(b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0")


def jpeg(width: int, height: int, metadata: int = 0) -> str:
    segments = b"".join(
        b"\xff\xe1" + struct.pack(">H", 60_002) + b"x" * 60_000 for _ in range(metadata)
    )
    tables = b"\xff\xff\xc4" + struct.pack(">H", 4) + b"hh"
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + b"\x03" * 9
    return b64(b"\xff\xd8" + segments + tables + frame + b"\xff\xda")


def webp(kind: bytes, payload: bytes) -> str:
    return b64(b"RIFF\x40\0\0\0WEBP" + kind + struct.pack("<I", len(payload)) + payload)


LOSSY = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480))
LOSSLESS = webp(b"VP8L", b"\x2f" + ((639) | (479 << 14)).to_bytes(4, "little"))
EXTENDED = webp(b"VP8X", b"\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"))


@for_each(
    "data",
    [
        png(640, 480),
        gif(640, 480),
        jpeg(640, 480),
        jpeg(640, 480, metadata=3),
        LOSSY,
        LOSSLESS,
        EXTENDED,
        "\n".join(png(640, 480)[at : at + 10] for at in range(0, 80, 10)),
    ],
)
def test_the_header_says_the_size(data: str) -> None:
    assert image_size(data) == (640, 480)


@for_each(
    ("width", "height", "old", "new"),
    [
        (28, 28, 1, 1),
        (29, 28, 2, 2),
        (1_000, 1_000, 36 * 36, 36 * 36),
        (1_568, 1_568, 1_568, 56 * 56),  # 3,136 patches: above the old tier's most
        (3_136, 784, 56 * 14, 92 * 23),  # scaled to 1568 x 392, and to 2576 x 644
        (8_000, 8_000, 1_568, 4_784),
        (8_000, 1, 56, 92),
    ],
)
def test_an_image_costs_its_patches(width: int, height: int, old: int, new: int) -> None:
    """Provider docs, vision: ceil(w/28) * ceil(h/28) after scaling down to the model's tier."""
    assert image_tokens(png(width, height), OLD) == old
    assert image_tokens(png(width, height), NEW) == new


@for_each("data", ["", "[redacted]", "====", "é", b64(b"BM12"), png(0, 5), "\ud800"])
def test_an_image_of_unknown_size_costs_the_most(data: str) -> None:
    assert image_tokens(data, OLD) == 1_568
    assert image_tokens(data, NEW) == 4_784


def test_a_truncated_jpeg_has_no_size() -> None:
    assert image_size(jpeg(640, 480)[:20]) is None


@given(st.binary(max_size=80), st.sampled_from(["", "/9j/", "iVBORw0KGgo", "R0lGODlh", "UklGR"]))
def test_no_data_is_too_broken(data: bytes, magic: str) -> None:
    assert 1 <= image_tokens(magic + b64(data), NEW) <= 4_784
    assert pdf_pages(magic + b64(data)) >= 1


def test_a_pdf_costs_by_the_page() -> None:
    pages = b"<< /Type /Page /Parent 1 0 R >>" * 3
    pdf = b64(b"%PDF-1.7 << /Type /Pages /Count 3 >>" + pages)
    assert pdf_pages(pdf) == 3
    part = DocumentPart(data=pdf)
    # provider docs, PDF support: 1,500 to 3,000 text tokens a page, and the page's image
    assert counter_for("model", NEW).part(part) == 3 * (1_500 + 1_568)
    assert counter_for("o200k", NEW).part(part) == 3 * 1_500


def test_packed_pages_are_taken_from_the_tree_or_the_size() -> None:
    assert pdf_pages(b64(b"%PDF-1.7 /Count 12 /Count 4")) == 12
    assert pdf_pages(b64(b"%PDF-1.7 " + bytes(250_000))) == 3
    assert pdf_pages(b64(b"%PDF-1.7 /Count 999999")) == 600


def test_the_plain_counter_has_one_price_for_images() -> None:
    assert counter_for("o200k", NEW).part(ImagePart(data=png(28, 28))) == 1_500


@for_each(
    ("name", "width", "height", "tokens"),
    [
        ("gpt-4o", 1_024, 1_024, 85 + 4 * 170),
        ("gpt-4o", 2_048, 4_096, 85 + 6 * 170),
        ("gpt-4o", 512, 512, 85 + 170),
        ("gpt-5", 1_024, 1_024, 70 + 4 * 140),
        ("gpt-4o-mini", 1_024, 1_024, 2_833 + 4 * 5_667),
        ("gpt-4.1-mini", 1_024, 1_024, 1_659),  # 1,024 patches, times 1.62
        ("gpt-4.1-mini", 1_800, 2_400, 2_353),  # 1,452 patches: the guide's own example
        ("o4-mini", 64, 32, 4),
        ("gpt-5.6-sol", 1_600, 1_600, 3_000),
        ("gemini-3.8-flash", 10, 10, 1_120),
    ],
)
def test_other_providers_images_cost_what_their_guides_say(
    name: str, width: int, height: int, tokens: int
) -> None:
    assert image_tokens(png(width, height), model_named(name)) == tokens


@given(
    st.integers(1, 20_000),
    st.integers(1, 20_000),
    st.sampled_from(("gpt-4o", "o4-mini", "gpt-5.6-sol")),
)
def test_no_image_costs_more_than_the_most(width: int, height: int, name: str) -> None:
    model = model_named(name)
    found = image_tokens(png(width, height), model)
    assert 0 < found <= image_tokens("no image", model)

"""The report as readers see it: drawn, alive, quiet, and safe whatever the names."""

import re
from importlib import resources
from itertools import pairwise

import pytest

from fairgrad.report.figure import DARK, LIGHT

DESKTOP = {"width": 1200, "height": 900}
PAGES = pytest.mark.parametrize("name", ["full", "hostile", "scored", "labels", "many"])
MARKS = "g.mark-symbol path, g.mark-rule line, g.mark-line path, g.mark-rect path"

SOME_DOT_SAYS = (
    "[...document.querySelectorAll('#frontier-rates g.mark-symbol.role-mark path')]"
    ".some(dot => dot.getAttribute('aria-label').includes('{}'))"
)


def rgb(colour):
    return "rgb({}, {}, {})".format(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))


def shown_rates(page):
    """What the dots of the second chart say."""
    dots = page.locator("#frontier-rates g.mark-symbol.role-mark path")
    return [dots.nth(i).get_attribute("aria-label") for i in range(dots.count())]


def open_all(seen):
    """Opens the collapsed parts, whose charts are drawn then."""
    seen.page.evaluate("document.querySelectorAll('details.more').forEach(d => d.open = true)")
    seen.wait_until("[...document.querySelectorAll('.plot')].every(p => p.querySelector('svg'))")


QUESTIONS = {
    "Is it fair?": r"so the model is judged fair",
    "For whom?": r"Women and men are predicted >50K .*: [\d.]+ % and [\d.]+ %",
    "At what price?": r"Accuracy is [\d.]+ %; without the fairness constraint it would be [\d.]+",
    "How certain?": r"95 % confidence, [\d,]+ rows",
    "Who gained?": r"Compared with .* [\d,]+ more women and [\d,]+ fewer men are predicted >50K",
    "How many people pay?": r"falls by [\d.]+ points \(interval [\d.]+ to [\d.]+\): \d+ fewer",
}
JARGON = (
    r"\|F\||--\w|\blevels?\b|\bMOVER\b|epsilon|ε|unfairness|multiplier|equalized odds|=\w|"
    r"parity|tolerance|frontier|baseline"
)


FIRST_SCREEN = """() => [...document.querySelectorAll('main *, header *')].filter(e => {
  const box = e.getBoundingClientRect();
  return e.children.length === 0 && box.height > 0 && box.bottom <= innerHeight;
}).map(e => e.textContent).join(' ')"""
SIZES = pytest.mark.parametrize("size", [(1280, 800), (390, 844)])


@SIZES
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("comparison", r"[\d,]+ of 6,000 people get a different decision"),
        ("comparison", r"The verdict by demographic parity, .* changes from unfair to fair"),
        ("impact", r"impact ratio .* Female [\d,]+ [\d,]+ [\d.]+% 0\.\d\d"),
        ("monitor", r"rate of women is [\d.]+ points [\s\S]*averages since 2026-01-01"),
        ("trade-off", r"Unfairness is the mean distance of a group's rate from the overall rate"),
    ],
)
def test_every_report_opens_with_its_answer_in_plain_words(open_page, name, answer, size):
    page = open_page(name, viewport={"width": size[0], "height": size[1]}).page
    seen = page.evaluate(FIRST_SCREEN)
    assert re.search(answer, seen), seen
    assert not re.search(r"\|F\||--\w|\blevels?\b|\bMOVER\b|epsilon|ε|sex=", seen), seen
    assert page.locator("main > section").count() <= 6


@SIZES
def test_the_first_screen_of_the_demo_answers_four_questions_without_jargon(open_page, size):
    """On a desktop and a phone, before any scrolling."""
    page = open_page("demo", viewport={"width": size[0], "height": size[1]}).page
    seen = page.evaluate(FIRST_SCREEN)
    for question, answer in QUESTIONS.items():
        assert re.search(answer, seen), (question, seen)
    assert not re.search(JARGON, seen), seen
    chart = page.locator("#summary .plot svg").bounding_box()
    assert chart["y"] + chart["height"] <= size[1]
    assert page.locator("main > section").count() <= 6


def test_every_chart_is_drawn_and_nothing_is_asked_of_the_net(shown, report):
    seen = shown("full", "desktop")
    open_all(seen)
    assert seen.page.locator(".plot svg").count() == len(report.figures)
    for figure in report.figures:
        assert seen.page.locator(f"#{figure.id} svg").locator(MARKS).count() > 0, figure.id
        box = seen.page.locator(f"#{figure.id} svg").bounding_box()
        assert box["width"] > 150, figure.id
        assert box["height"] > 40, figure.id
    seen.check_quiet()


def test_hovering_a_point_tells_its_figures(shown):
    seen = shown("full", "desktop")
    dots = seen.page.locator("#frontier g.mark-symbol.role-mark path")
    dots.nth(4).hover()
    tip = seen.page.locator("#vg-tooltip-element")
    seen.page.wait_for_selector("#vg-tooltip-element.visible")
    text = tip.inner_text()
    assert "trained for" in text
    assert "a gap of at most 0.08" in text
    assert "accuracy" in text
    assert "82.0 %" in text
    assert "unfairness" in text
    assert "0.0500" in text
    for part in ("key", "value"):
        colour = f"getComputedStyle(document.querySelector('#vg-tooltip-element td.{part}')).color"
        assert seen.page.evaluate(colour) == rgb(LIGHT["ink"])  # faint grey could not be read
    seen.check_quiet()


def test_keyboard_and_mouse_choose_a_point_and_show_its_rates(open_page):
    seen = open_page(viewport=DESKTOP)
    page = seen.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the conclusion"
    assert page.locator("#point").input_value() == "2"  # the chosen one
    before = shown_rates(page)
    page.locator("#point").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#point").input_value() == "3"
    seen.wait_until(SOME_DOT_SAYS.format("65%"))
    page.locator("#frontier g.mark-symbol.role-mark path").nth(5).click()
    assert page.locator("#point").input_value() == "5"
    seen.wait_until(SOME_DOT_SAYS.format("75%"))  # accuracy of F at point 5
    assert not any("75%" in label for label in before)
    assert len(before) == len(shown_rates(page)) == 4
    assert "trained for a gap of at most 0.1" in page.locator("#point-said").inner_text()
    summary = page.locator("#trade-off details summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("#trade-off details table").first.is_visible()
    seen.check_quiet()


def test_hostile_names_are_shown_as_text(shown, samples):
    seen = shown("hostile", "desktop")
    page = seen.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, b, iframe").count() == 0
    assert page.title() == samples.HOSTILE[0]
    text = page.evaluate("document.body.textContent")
    drawn = page.evaluate("[...document.querySelectorAll('svg text')].map(t => t.textContent)")
    for name in samples.HOSTILE:
        assert name in text
        assert any(label.startswith(name[:8]) for label in drawn), name
    assert "<b>sex</b>" in text
    dots = page.locator("#rate-0-accuracy-0 g.mark-symbol.role-mark path")
    for i in range(dots.count()):
        dots.nth(i).hover()
        page.wait_for_selector("#vg-tooltip-element.visible")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0
    seen.check_quiet()


def test_the_policy_stops_any_other_script(open_page):
    seen = open_page(viewport=DESKTOP)
    seen.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.hacked = 1";
          document.body.append(script);
          const image = document.createElement("div");
          image.innerHTML = "<img src='data:,' onerror='window.hacked = 1'>";
          document.body.append(image);
          return fetch("http://127.0.0.1:9/").catch(() => {});
        }"""
    )
    seen.page.wait_for_timeout(200)
    assert seen.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in problem for problem in seen.problems)


@PAGES
@pytest.mark.parametrize("screen", ["desktop", "phone"])
def test_everything_is_drawn_on_every_screen_without_scrolling_sideways(shown, name, screen):
    seen = shown(name, screen)
    width = seen.page.viewport_size["width"]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    open_all(seen)
    for plot in seen.page.locator(".plot").all():
        assert plot.locator(MARKS).count() > 0, plot.get_attribute("id")
        assert plot.locator("svg").evaluate("s => s.getBoundingClientRect().right") <= width + 1
    seen.check_quiet()


@pytest.mark.parametrize(
    ("name", "screen"),  # every page once; light and dark, wide and narrow for each kind of content
    [("full", "desktop"), ("scored", "desktop"), ("full", "phone"), ("hostile", "phone"),
     ("labels", "phone"), ("many", "phone")],
)  # fmt: skip
def test_axe_finds_nothing_to_complain_about(shown, name, screen):
    page = shown(name, screen).page
    page.mouse.move(0, 0)  # no tooltip, which is in no landmark
    page.evaluate(
        "[...document.querySelectorAll('details')].slice(0, 3).forEach(d => d.open = true)"
    )
    page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text())
    found = page.evaluate("axe.run()")
    said = [
        (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
        for one in found["violations"]
    ]
    assert said == []
    assert len(found["passes"]) > 20


@pytest.mark.parametrize(("screen", "colours"), [("desktop", LIGHT), ("phone", DARK)])
def test_charts_follow_the_colour_scheme(shown, screen, colours):
    page = shown("full", screen).page
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == rgb(colours["page"])
    label = "getComputedStyle(document.querySelector('#frontier .role-axis-label text')).fill"
    assert page.evaluate(label) == rgb(colours["ink"])
    dot = "getComputedStyle(document.querySelector('#frontier g.mark-symbol.role-mark path')).fill"
    assert page.evaluate(dot) == rgb(colours["accent"])


@pytest.mark.parametrize("name", ["full", "scored"])
def test_two_groups_print_on_four_white_pages_without_controls(open_page, name):
    page = open_page(name, viewport=DESKTOP, color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == rgb(LIGHT["ink"])
    assert not page.locator("nav").is_visible()
    assert page.locator(".plot svg").first.is_visible()
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(pdf) > 20_000
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 4


def test_charts_have_words_for_screen_readers(shown, report):
    page = shown("full", "desktop").page
    for figure in report.figures:
        assert page.locator(f"#{figure.id}").get_attribute("aria-label") == figure.alternative
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    unnamed = page.evaluate(
        "[...document.querySelectorAll('select,summary,a,[role=region]')].filter(e => "
        "!(e.textContent.trim() || e.getAttribute('aria-label'))).length"
    )
    assert unnamed == 0


def test_without_javascript_the_tables_still_tell_everything(open_page, report):
    seen = open_page(wait=False, viewport=DESKTOP, java_script_enabled=False)
    assert seen.page.locator("details.data table").count() == len(report.figures)
    for sentence in report.audit.sections[0].sentences:
        assert sentence in seen.page.locator("#summary").inner_text()
    assert seen.page.locator("noscript p").is_visible()


def test_tables_of_many_groups_are_sorted_and_filtered(shown):
    seen = shown("many", "desktop")
    page = seen.page
    table = page.locator("#groups table").first

    def column(place):
        cells = f"tbody tr:not([hidden]) > *:nth-child({place})"
        return table.locator(cells).all_inner_texts()

    people = [int(text.replace(",", "")) for text in column(2)]
    assert people[:-1] == sorted(people[:-1], reverse=True)  # everyone comes last
    button = table.locator("th button").nth(2)
    button.focus()
    page.keyboard.press("Enter")
    assert button.locator("..").get_attribute("aria-sort") == "descending"
    shares = [float(text.split("±")[0]) for text in column(3)]
    assert shares[:-1] == sorted(shares[:-1], reverse=True)
    page.keyboard.press("Enter")
    assert button.locator("..").get_attribute("aria-sort") == "ascending"
    shares = [float(text.split("±")[0]) for text in column(3)]
    assert shares[:-1] == sorted(shares[:-1])
    page.locator("#groups input[type=search]").first.fill("job 77")
    assert [name.split("\n")[0] for name in column(1)] == ["job 77", "overall"]
    assert "1 of " in page.locator("#groups output").first.inner_text()
    page.locator("#groups input[type=search]").first.fill("")
    assert len(column(1)) == len(people)
    seen.check_quiet()

"""The page, as a browser shows it and as people use it."""

import re

import pytest

from caltree._fitted.names import printable

from ..support.report_scenes import HOSTILE, SCENES

every_scene = pytest.mark.parametrize("scene", SCENES)

TOO_WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 0.5)
  .map((each) => each.outerHTML.slice(0, 100))"""


# The sentences that take more than two lines.
LONG_SENTENCES = r"""() => {
  const isInline = (each) => getComputedStyle(each).display === "inline";
  const long = [];
  for (const block of document.querySelectorAll("p, li, dd, dt, th, td, h2, h3, span")) {
    if (isInline(block) || ![...block.children].every(isInline)) continue;
    if (!block.checkVisibility() || block.closest("svg, pre, .hidden")) continue;
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    const place = (offset) => {
      for (const node of nodes) {
        if (offset <= node.length) return [node, offset];
        offset -= node.length;
      }
    };
    const text = nodes.map((node) => node.data).join("");
    for (const found of text.matchAll(/\S.*?(?:[.!?](?=\s|$)|$)/gs)) {
      const range = document.createRange();
      range.setStart(...place(found.index));
      range.setEnd(...place(found.index + found[0].length));
      const ends = [...range.getClientRects()].map((each) => each.bottom);
      const line = parseFloat(getComputedStyle(block).lineHeight);
      if (Math.max(...ends) - Math.min(...ends) > 1.6 * line) long.push(found[0]);
    }
  }
  return long;
}"""


def places_of(data):
    return [*data["groups"], *data["regions"]]


def panel_shows(page, place):
    """Whether the panel is that of a group, a region or a node, with its own diagram."""
    panel = page.locator("#panel")
    points = len(place.get("before", [])) + len(place.get("after", []))
    return (
        panel.get_attribute("data-place") == place["id"]
        and panel.locator("svg circle").count() == points
        and all(part in panel.inner_text() for part in place["conditions"])
    )


# Whatever is shown


@every_scene
def test_it_opens_quietly_alone_and_fits(look, saved, scene):
    page = look(scene, offline=True)
    for width, scheme in ((1280, "light"), (360, "dark"), (360, "light")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(TOO_WIDE) == []
    assert page.complaints == []
    assert page.requests == [saved(scene).as_uri()]
    assert page.locator("#diagram svg").count() == 1
    assert page.locator("h1").is_visible() and page.locator("#verdict").is_visible()


@pytest.mark.parametrize("scene", ["loans", "many_classes", "many_leaves", "scaling"])
def test_it_needs_no_script_to_be_read(look, made, scene):
    page = look(scene, java_script_enabled=False)
    data = made(scene).data
    nodes = data["tree"]["nodes"] if data["tree"] else []
    assert page.locator(".place:visible").count() == len(places_of(data))
    assert page.locator("[role=treeitem]:visible").count() == len(nodes)
    assert page.locator(".measures tbody tr:visible").count() == len(data["measures"])


@pytest.mark.parametrize("scene", ["loans", "worse", "seen", "many_classes", "few_rows"])
def test_no_sentence_is_longer_than_two_lines(look, scene):
    page = look(scene, 1200)
    assert page.evaluate(LONG_SENTENCES) == []
    page.set_viewport_size({"width": 500, "height": 800})
    assert page.evaluate(LONG_SENTENCES) != []  # it can fail


@pytest.mark.parametrize("width", [375, 700, 920, 1000, 1130, 1400])
def test_figures_are_not_broken_into_lines(look, width):
    found = (
        look("loans", width)
        .locator(".change")
        .evaluate_all(
            """all => all.map(each => [
          Math.round(each.offsetHeight / parseFloat(getComputedStyle(each).lineHeight)),
          each.scrollWidth <= each.clientWidth,
        ])"""
        )
    )
    assert found == [[1, True]] * 4


@every_scene
def test_it_is_small(saved, scene):
    assert saved(scene).stat().st_size < 2_000_000


# Groups and regions


def test_clicking_a_place_shows_its_own_diagram(look, made):
    page, data = look("loans"), made("loans").data
    assert panel_shows(page, data["regions"][0])
    places = places_of(data)
    for number in (3, len(data["groups"]) + 2):
        page.locator(".place").nth(number).click()
        assert panel_shows(page, places[number])
        assert page.locator(".place.chosen").count() == 1
        assert f"{places[number]['rows']:,}" in page.locator("#panel-numbers").inner_text()
    assert page.complaints == []


def test_hovering_shows_a_place_for_the_moment(look, made):
    page, groups = look("loans"), made("loans").data["groups"]
    page.locator(".place").nth(1).click()
    page.locator(".place").nth(4).hover()
    assert panel_shows(page, groups[4])
    page.locator("h1").hover()
    assert panel_shows(page, groups[1])


def test_places_by_keyboard(look, made):
    page, groups = look("loans"), made("loans").data["groups"]
    page.locator(".place").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert panel_shows(page, groups[2])
    page.keyboard.press("ArrowUp")
    assert panel_shows(page, groups[1])
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert panel_shows(page, groups[2])
    page.locator(".place").first.focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.place") == groups[0]["id"]


def test_the_first_regions_are_shown_and_all_on_request(look, made):
    page, regions = look("many_leaves"), made("many_leaves").data["regions"]
    shown = page.locator("#region-list .place:visible")
    assert len(regions) > 12 and shown.count() == 8
    page.locator("#all-regions").click()
    assert shown.count() == len(regions)
    shown.last.click()
    assert panel_shows(page, regions[-1])
    page.locator("#all-regions").click()
    assert shown.count() == 8


def test_few_regions_are_shown_at_once(look, made):
    page, regions = look("loans"), made("loans").data["regions"]
    assert page.locator("#region-list .place:visible").count() == len(regions) <= 12
    assert page.locator("#all-regions").count() == 0


def test_places_that_may_be_chance_are_pale_and_say_so(look, made):
    page, data = look("loans"), made("loans").data
    groups = {" and ".join(each["conditions"]): each for each in data["groups"]}
    group, claimed = groups["contract = self-employed"], groups["contract = student"]
    shown = page.locator(f"[data-place={group['id']}]")
    assert "pale" in shown.get_attribute("class")
    assert "scores: may be chance" in shown.inner_text()
    assert "pale" not in page.locator(f".place[data-place={claimed['id']}]").get_attribute("class")


def test_few_rows_are_not_judged(look, made):
    page = look("few_rows")
    [group] = made("few_rows").data["groups"]
    assert "scores: too few rows or events" in page.locator(".place").inner_text()
    assert "No region is large enough" in page.locator("main").inner_text()
    assert page.locator("#panel svg circle").count() == 0
    assert group["tests"]["scores"]["p_value"] is None
    assert page.complaints == []


def test_what_calibration_made_worse_is_named_at_the_top(look):
    page = look("worse")
    banner = page.locator("#worse")
    assert "contract = permanent" in banner.inner_text()
    assert banner.bounding_box()["y"] < page.locator("#reliability").bounding_box()["y"]


# Values of attributes


def test_any_attribute_can_be_looked_at(look, made):
    page, attributes = look("loans"), made("loans").data["attributes"]
    select, lines = page.locator("#attribute"), page.locator("#lines tr")
    assert select.locator("option").all_inner_texts() == [each["name"] for each in attributes]
    for number, attribute in enumerate(attributes):
        select.select_option(str(number))
        assert lines.locator("th").all_inner_texts() == [x["words"] for x in attribute["lines"]]
        first = attribute["lines"][0]
        assert f"{first['rows']:,}" in lines.first.inner_text()
        assert f"{100 * first['predicted']:.0f}\xa0%" in lines.first.inner_text()
        assert lines.locator("svg").count() == len(attribute["lines"])
    assert page.complaints == []


def test_attributes_by_keyboard_and_on_a_phone(look, made):
    page, attributes = look("loans", 360), made("loans").data["attributes"]
    page.locator("#attribute").focus()
    page.keyboard.press("ArrowDown")
    words = [line["words"] for line in attributes[1]["lines"]]
    assert page.locator("#lines th").all_inner_texts() == words
    assert page.evaluate(TOO_WIDE) == []
    assert page.locator("label[for=attribute]").inner_text() == "Attribute"


def test_lines_of_few_rows_are_pale(look, made):
    page, attributes = look("few_rows"), made("few_rows").data["attributes"]
    assert page.locator("#lines .pale").count() == len(attributes[0]["lines"])


def test_without_attributes_there_is_nothing_to_look_at(look):
    page = look("scaling")
    assert page.locator("#attribute").count() == 0
    assert page.locator(".place").count() > 1  # regions of scores


# The tree


def test_clicking_a_node_shows_its_own_diagram(look, made):
    page, nodes = look("loans"), made("loans").data["tree"]["nodes"]
    for node in (nodes[0], nodes[1]):
        page.locator(f"#item-{node['id']} .branch").click()
        assert panel_shows(page, node)
    page.locator(f"#item-{nodes[0]['id']} .branch").hover()
    assert panel_shows(page, nodes[0])


def test_the_tree_by_keyboard(look, made):
    page, nodes = look("loans"), made("loans").data["tree"]["nodes"]
    items, first = page.locator("[role=treeitem]:visible"), page.locator("[role=treeitem]").first
    n_shown = items.count()
    first.focus()
    page.keyboard.press("Enter")
    assert panel_shows(page, nodes[0])
    page.keyboard.press("ArrowDown")
    assert panel_shows(page, nodes[1])
    page.keyboard.press("ArrowDown")
    assert panel_shows(page, nodes[2])
    page.keyboard.press("ArrowUp")
    assert panel_shows(page, nodes[1])
    page.keyboard.press("Home")
    assert panel_shows(page, nodes[0])
    page.keyboard.press("ArrowLeft")
    assert items.count() == 1 and first.get_attribute("aria-expanded") == "false"
    page.keyboard.press("ArrowRight")
    assert items.count() == n_shown
    page.keyboard.press("ArrowRight")
    assert panel_shows(page, nodes[1])
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.id") == f"item-{nodes[0]['id']}"
    page.keyboard.press("End")
    last = page.evaluate("document.activeElement.dataset.place")
    page.keyboard.press("Enter")
    assert page.locator("#panel").get_attribute("data-place") == last
    assert page.locator("[role=treeitem][tabindex='0']").count() == 1


def test_a_large_tree_begins_folded(look, made):
    page, nodes = look("many_leaves"), made("many_leaves").data["tree"]["nodes"]
    items = page.locator("[role=treeitem]:visible")
    assert items.count() < 31
    page.locator("#open-all").click()
    assert items.count() == len(nodes)
    assert page.evaluate(TOO_WIDE) == []
    page.locator("#close-all").click()
    assert items.count() == 1 + nodes[0]["children"]
    page.locator("[role=treeitem] .caret").nth(0).click()
    assert items.count() == 1
    assert "It is cut back to its 200 largest nodes." in page.locator("main").inner_text()


def test_a_large_tree_fits_a_phone_when_it_is_open(look):
    page = look("many_leaves", 360)
    page.locator("#open-all").click()
    page.locator("#all-regions").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(TOO_WIDE) == []


def test_a_single_leaf_is_a_tree_too(look):
    page = look("one_leaf")
    assert page.locator("[role=treeitem]").count() == 1
    assert "all rows are treated alike" in page.content()
    page.locator("[role=treeitem]").click()
    assert "all rows" in page.locator("#panel-title").inner_text()


# On a phone


def test_on_a_phone_the_panel_comes_and_goes(look, made):
    page, groups = look("loans", 360), made("loans").data["groups"]
    panel = page.locator("#panel")
    assert panel.is_hidden()
    page.locator(".place").nth(1).click()
    assert panel.is_visible() and panel_shows(page, groups[1])
    assert page.evaluate(TOO_WIDE) == []
    page.locator("#panel-close").click()
    assert panel.is_hidden()
    page.locator("[role=treeitem] .branch").first.click()
    assert panel.is_visible()
    page.keyboard.press("Escape")
    assert panel.is_hidden()


# Classes


def test_every_class_can_be_chosen_and_the_worst_comes_first(look, made):
    page, classes = look("many_classes"), made("many_classes").data["reliability"]
    buttons = page.locator("[data-class]")
    assert buttons.count() == len(classes) == 6
    errors = [each["error_before"] for each in classes]
    assert errors == sorted(errors, reverse=True)
    assert page.locator("#class-name").inner_text() == classes[0]["class"]
    for index in (5, 3):
        buttons.nth(index).click()
        assert page.locator("#class-name").inner_text() == classes[index]["class"]
        points = page.locator("#diagram svg circle").count()
        assert points == len(classes[index]["before"]) + len(classes[index]["after"])
        assert page.locator("[data-class][aria-pressed=true]").count() == 1
    assert page.locator(".mini svg").count() == 6


def test_two_classes_need_no_choice(look):
    page = look("loans")
    assert page.locator("[data-class]").count() == 0
    assert "the probability is that of yes" in page.locator("header").inner_text()


# Colours


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def colour(page, name):
    script = """(name) => {
      const probe = document.createElement("i");
      probe.style.color = `var(--${name})`;
      document.body.append(probe);
      return getComputedStyle(probe).color;
    }"""
    return page.evaluate(script, name)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_every_ground(look, scheme):
    page = look("seen", scheme=scheme)
    for ground in ("paper", "card", "chip", "chosen", "alarm", "warn"):
        assert contrast(colour(page, "ink"), colour(page, ground)) > 7
    for text in ("soft", "before", "after", "good", "bad"):
        for ground in ("paper", "card"):
            assert contrast(colour(page, text), colour(page, ground)) > 4.5
    assert contrast(colour(page, "bad"), colour(page, "alarm")) > 4.5
    assert (luminance(colour(page, "paper")) < 0.1) == (scheme == "dark")


def test_paper_is_white_whatever_the_scheme(look):
    page = look("loans", scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".buttons:visible").count() == 0
    assert page.locator("#panel").is_visible()
    assert page.locator("#lines tr:visible").count() > 1
    assert page.pdf().startswith(b"%PDF")


# Rows that were seen


def test_rows_of_training_raise_a_banner_before_anything_else(look):
    page = look("seen")
    banner = page.locator("[role=alert]")
    assert "was fitted to these rows" in banner.inner_text()
    assert "train_test_split" in banner.inner_text()
    above = banner.bounding_box()["y"]
    assert page.locator("h1").bounding_box()["y"] < above
    assert above < page.locator("#verdict").bounding_box()["y"]
    assert "already seen" in page.locator("#verdict").inner_text()


def test_rows_that_are_alike_give_doubt_and_no_alarm(look):
    page = look("alike")
    assert page.locator("[role=alert]").count() == 0
    assert "training rows are alike" in page.locator("#unsure").inner_text()


@pytest.mark.parametrize(
    "scene", ["loans", "forest", "boosting", "ensemble", "model", "scaling", "untouched"]
)
def test_fresh_rows_raise_no_banner(look, scene):
    page = look(scene)
    assert page.locator(".banner:not(#worse)").count() == 0
    text = page.locator(".facts").inner_text()
    assert re.search(r"None of \d+ rows that could be checked had", text)


# Names that mean harm


def test_hostile_names_stay_text(look, made):
    page, data = look("hostile"), made("hostile").data
    assert page.title() == printable(" ".join(HOSTILE))
    assert page.locator("h1").inner_text() == " ".join(printable(" ".join(HOSTILE)).split())
    for each, place in enumerate(places_of(data)):
        page.evaluate(f"document.querySelectorAll('.place')[{each}].click()")
        assert panel_shows(page, place)
    for number in range(len(data["attributes"])):
        page.locator("#attribute").select_option(str(number))
    assert page.evaluate("window.hurt") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.complaints == []
    words = " ".join(part for node in data["tree"]["nodes"] for part in node["conditions"])
    assert "<script>window.hurt = 1</script>" in words
    assert data["classes"][1].startswith("<i>yes</i>")


def test_hostile_names_stay_text_in_the_file(saved):
    text = saved("hostile").read_text("utf-8")
    assert text.count("<script") == text.count("</script") == 2
    assert not {"\u2028", "\u2029", "\u202e", "\x00"} & set(text)
    evidence = text.split('id="evidence">')[1].split("</script>")[0]
    assert evidence.isascii() and not {"<", ">", "&"} & set(evidence)
    assert "{{ 7 * 7 }}" in text

"""The page, as a browser shows it and as people use it."""

import re

import pytest

from caltree._fitted.names import printable

from ..support.report_scenes import HOSTILE, SCENES

every_scene = pytest.mark.parametrize("scene", SCENES)

TOO_WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 0.5)
  .map((each) => each.outerHTML.slice(0, 100))"""


def number_of_points(place):
    return len(place["before"]) + len(place["after"])


def panel_shows(page, place):
    """Whether the panel is that of a region or node, with its own diagram."""
    panel = page.locator("#panel")
    return (
        panel.get_attribute("data-place") == place["id"]
        and panel.locator("svg circle").count() == number_of_points(place)
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
    assert page.locator(".region:visible").count() == len(data["regions"])
    assert page.locator("[role=treeitem]:visible").count() == len(data["tree"] or [])
    assert page.locator(".metrics tbody tr:visible").count() == len(data["metrics"])


@every_scene
def test_it_is_small(saved, scene):
    assert saved(scene).stat().st_size < 2_000_000


# Regions


def test_clicking_a_region_shows_its_own_diagram(look, made):
    page, regions = look("loans"), made("loans").data["regions"]
    assert panel_shows(page, regions[0])
    page.locator(".region").nth(3).click()
    assert panel_shows(page, regions[3])
    assert page.locator(".region.chosen").count() == 1
    assert page.locator("[aria-selected=true]").get_attribute("data-place") == regions[3]["id"]
    assert f"{regions[3]['rows']:,.0f}\xa0rows" in page.locator("#panel-sentence").inner_text()
    assert page.locator("#panel-formulas").inner_text() == "\n".join(regions[3]["formulas"])
    assert regions[3]["outcome"] in page.locator("#panel-numbers").inner_text()
    assert page.complaints == []


def test_hovering_shows_a_region_for_the_moment(look, made):
    page, regions = look("loans"), made("loans").data["regions"]
    page.locator(".region").nth(1).click()
    page.locator(".region").nth(4).hover()
    assert panel_shows(page, regions[4])
    page.locator("h1").hover()
    assert panel_shows(page, regions[1])


def test_regions_by_keyboard(look, made):
    page, regions = look("loans"), made("loans").data["regions"]
    page.locator(".region").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert panel_shows(page, regions[2])
    page.keyboard.press("ArrowUp")
    assert panel_shows(page, regions[1])
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert panel_shows(page, regions[2])
    page.locator(".region").first.focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.place") == regions[0]["id"]


def test_the_first_regions_are_shown_and_all_on_request(look, made):
    page, regions = look("many_leaves"), made("many_leaves").data["regions"]
    assert len(regions) == 200
    assert page.locator(".region:visible").count() == 10
    page.locator("#all-regions").click()
    assert page.locator(".region:visible").count() == 200
    page.locator(".region").nth(199).click()
    assert panel_shows(page, regions[199])
    page.locator("#all-regions").click()
    assert page.locator(".region:visible").count() == 10


def test_the_regions_of_a_small_tree_are_shown_at_once(look, made):
    page, regions = look("loans"), made("loans").data["regions"]
    assert page.locator(".region:visible").count() == len(regions) <= 16
    assert page.locator("#all-regions").count() == 0


def test_regions_of_few_rows_are_pale_and_say_so(look, made):
    page = look("few_rows")
    regions = made("few_rows").data["regions"]
    assert all(region["few"] for region in regions)
    assert page.locator(".region.few").count() == len(regions)
    assert "Too few rows to judge" in page.locator("#panel-doubt").inner_text()
    page.locator(".region", has_text="no rows here").first.click()
    assert "nothing can be said" in page.locator("#panel-doubt").inner_text()
    assert page.locator("#panel svg circle").count() == 0
    assert page.complaints == []


@pytest.mark.parametrize("scene", ["forest", "untouched", "one_leaf"])
def test_segments_can_be_chosen_too(look, made, scene):
    page, regions = look(scene), made(scene).data["regions"]
    page.locator(".region").nth(2).click()
    assert panel_shows(page, regions[2])


def test_without_regions_there_is_no_panel(look):
    page = look("scaling")
    assert page.locator("#panel").count() == 0
    assert "not divided into regions: no attributes were given" in page.content()


# The tree


def test_clicking_a_node_shows_its_own_diagram(look, made):
    page, nodes = look("loans"), made("loans").data["tree"]
    for node in (nodes[0], nodes[1]):
        page.locator(f"#item-{node['id']} .branch").click()
        assert panel_shows(page, node)
    page.locator(f"#item-{nodes[0]['id']} .branch").hover()
    assert panel_shows(page, nodes[0])


def test_the_tree_by_keyboard(look, made):
    page, nodes = look("loans"), made("loans").data["tree"]
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
    page, nodes = look("many_leaves"), made("many_leaves").data["tree"]
    items = page.locator("[role=treeitem]:visible")
    assert items.count() < 31
    page.locator("#open-all").click()
    assert items.count() == len(nodes)
    assert page.evaluate(TOO_WIDE) == []
    page.locator("#close-all").click()
    assert items.count() == 1 + nodes[0]["children"]
    page.locator("[role=treeitem] .caret").nth(0).click()
    assert items.count() == 1
    assert "is cut back to the 200 largest regions" in page.locator("#note").inner_text()


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
    page, regions = look("loans", 360), made("loans").data["regions"]
    panel = page.locator("#panel")
    assert panel.is_hidden()
    page.locator(".region").nth(1).click()
    assert panel.is_visible() and panel_shows(page, regions[1])
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
    assert buttons.count() == len(classes) == 26
    errors = [each["error_before"] for each in classes]
    assert errors == sorted(errors, reverse=True)
    assert page.locator("#class-name").inner_text() == classes[0]["class"]
    for index in (25, 7):
        buttons.nth(index).click()
        assert page.locator("#class-name").inner_text() == classes[index]["class"]
        points = page.locator("#diagram svg circle").count()
        assert points == number_of_points(classes[index])
        assert page.locator("[data-class][aria-pressed=true]").count() == 1
    assert page.locator(".mini svg").count() == 26


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
    assert page.pdf().startswith(b"%PDF")


# Rows that were seen


def test_rows_of_training_raise_a_banner_before_anything_else(look):
    page = look("seen")
    banner = page.locator("[role=alert]")
    assert "It was fitted to these very rows" in banner.inner_text()
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
    assert page.locator(".banner").count() == 0
    assert "that could be checked, none" in page.locator("footer").inner_text()


# Names that mean harm


def test_hostile_names_stay_text(look, made):
    page, data = look("hostile"), made("hostile").data
    assert page.title() == printable(" ".join(HOSTILE))
    assert page.locator("h1").inner_text() == " ".join(printable(" ".join(HOSTILE)).split())
    for each in range(len(data["regions"])):
        page.evaluate(f"document.querySelectorAll('.region')[{each}].click()")
        assert panel_shows(page, data["regions"][each])
    assert page.evaluate("window.hurt") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.complaints == []
    words = " ".join(region["words"] for region in data["regions"])
    assert "<script>window.hurt = 1</script>" in words
    assert data["classes"][1].startswith("<i>yes</i>")


def test_hostile_names_stay_text_in_the_file(saved):
    text = saved("hostile").read_text("utf-8")
    assert text.count("<script") == text.count("</script") == 2
    assert not {"\u2028", "\u2029", "\u202e", "\x00"} & set(text)
    evidence = text.split('id="evidence">')[1].split("</script>")[0]
    assert evidence.isascii() and not {"<", ">", "&"} & set(evidence)
    assert "{{ 7 * 7 }}" in text

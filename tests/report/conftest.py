"""Saved reports, and a real browser to look at them."""

import os
import shutil

import pytest

from ..support.report_scenes import SCENES

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def made():
    """Reports by the name of their scene, each made once."""
    kept = {}

    def make(name):
        if name not in kept:
            kept[name] = SCENES[name]()
        return kept[name]

    return make


@pytest.fixture(scope="session")
def saved(made, tmp_path_factory):
    """The files of the reports."""
    folder = tmp_path_factory.mktemp("reports")

    def save(name):
        path = folder / f"{name}.html"
        if not path.exists():
            made(name).save(path)
        return path

    return save


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        sync_playwright = None
    if found is None or sync_playwright is None:
        lacking = "Chromium" if found is None else "playwright"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{lacking} is not installed, and the report must be looked at")
        pytest.skip(f"{lacking} is not installed")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield running
        running.close()


@pytest.fixture
def look(browser, saved):
    """Open the report of a scene; complaints and requests are noted down on the page."""
    contexts = []

    def look(scene, width=1280, scheme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(saved(scene).as_uri())
        return page

    yield look
    for context in contexts:
        context.close()

"""The documentation site; `make docs` builds it."""

import warnings

from caltree import __version__

project = "caltree"
author = "the caltree developers"
project_copyright = "the caltree developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
exclude_patterns = ["gallery/GALLERY_HEADER.rst", "_templates"]
root_doc = "index"
myst_heading_anchors = 3

html_theme = "furo"
html_title = "caltree"
html_static_path: list[str] = []
html_show_sourcelink = False

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 10_000,
    "remove_config_comments": True,
}

# What an example warns of shall be mended, not shown.
warnings.simplefilter("error", UserWarning)


def skip_what_is_not_ours(app, what, name, obj, skip, options):
    """Leave out what comes from scikit-learn, with links that lead nowhere here."""
    ours = not name.endswith(("_request", "_routing", "_params"))
    return skip or not ours or (getattr(obj, "__module__", "") or "").startswith("sklearn")


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip_what_is_not_ours)

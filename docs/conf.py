"""How the documentation is built: ``make docs``. Needs no network."""

import sys
import warnings
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import torch
from charts import ChartScraper

torch.set_num_threads(1)  # networks here are small: one thread is fastest, and figures repeat
warnings.filterwarnings("error", module="fairgrad")  # an example that warns is a poor example

project = "FairGrad"
author = "the FairGrad authors"
project_copyright = "the FairGrad authors; Apache License 2.0"
release = version = version_of("fairgrad")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
    "executed",
    "gallery_order",
    "mathml",
    "program",
    "reference",
    "repository_pages",
    "results_tables",
    "site_check",
]
exclude_patterns = ["gallery", "extensions", "templates", "made", "**/sg_execution_times.rst"]
suppress_warnings = [
    "myst.header",  # the reproduction page is generated with tables one level down
    "config.cache",  # the scraper of charts is an object
]

# Markdown, and the mathematics in it.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# The reference. Single backticks in docstrings name Python objects where there are such.
default_role = "py:obj"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_preprocess_types = False
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # names of methods alone fit beside the page
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 88
# References into this package must resolve; others' objects cannot without their inventories.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!fairgrad\.).*"),
    # Types in signatures that have no page:
    (r"py:class", r"fairgrad\.\w+\.\w+\.\w+"),
    (r"py:class", r"fairgrad\.(dual\.(Constants|State)|groups\.GroupedRows)"),
    (r"py:class", r"fairgrad\.(text\.(Section|Block)|splitting\.SplitRows)"),
]
rst_epilog = r"""
.. |F| replace:: \|F\|
"""

# The gallery: every script is run, a failing one fails the build.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"worker_",
    "within_subsection_order": "gallery_order.ReadingOrder",
    "image_scrapers": (ChartScraper(),),
    "reset_modules": (),
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"altair|fairgrad\.|torch\.nn|lightgbm",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "notebook_extensions": set(),
    "remove_config_comments": True,
    "plot_gallery": True,
    "backreferences_dir": None,
}

# The pages.
html_theme = "pydata_sphinx_theme"
html_title = "FairGrad"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
templates_path = ["templates"]
RESULT_PAGES = [
    *(f"results/{page.stem}" for page in Path(__file__).parent.glob("results/*.md")),
    *("reproduction", "reproduction_figures"),
]
"""Pages whose tables need the room of the table of contents."""
html_theme_options = {
    "logo": {"text": "FairGrad", "alt_text": "FairGrad: to the first page"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], **{name: [] for name in RESULT_PAGES}},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
html_sidebars = {
    name: []
    for name in (
        *("index", "loops", "files", "certify", "monitor", "known", "scale", "compliance", "faq"),
        *("options", "reliability", "stability", "architecture", "contributing", "changelog"),
    )
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

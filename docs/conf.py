"""How Sphinx makes the site (``make site``): the pages of this folder, and those that are written from code and schemas."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "site"))

from search_words import write_scorer  # noqa: E402 - of the folder above

from reconciler import __version__  # noqa: E402 - of the checkout

project = "kafka-quotas"
version = release = __version__
repository = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}".format_map(os.environ) if "GITHUB_REPOSITORY" in os.environ else None
extensions = ["myst_parser", "sphinx_copybutton", "generated_pages"]
exclude_patterns = ["conf.py"]
html_theme = "furo"
html_title = f"kafka-quotas {__version__}"
html_theme_options = (
    {"footer_icons": [{"name": "Repository", "url": repository, "html": "Repository", "class": ""}]} if repository else {}
)
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(write_scorer(Path(__file__).parent))
html_copy_source = False
html_show_copyright = False
myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 4
copybutton_prompt_text = "$ "  # a transcript is copied without its prompts and without what the commands print
copybutton_line_continuation_character = "\\"
smartquotes = False  # "--flag" stays what a shell takes
suppress_warnings = ["misc.highlighting_failure"]  # console transcripts are not always their language

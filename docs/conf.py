"""How Sphinx makes the site (``make site``): the pages of this folder, and those that are written from code and schemas."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "site"))

project = "kafka-quotas"
extensions = ["myst_parser", "sphinx_copybutton", "generated_pages"]
exclude_patterns = ["conf.py"]
html_theme = "furo"
html_title = "kafka-quotas"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
html_copy_source = False
html_show_copyright = False
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
copybutton_prompt_text = "$ "  # a transcript is copied without its prompts and without what the commands print
copybutton_line_continuation_character = "\\"
smartquotes = False  # "--flag" stays what a shell takes
suppress_warnings = ["misc.highlighting_failure"]  # console transcripts are not always their language

# Hooks of mkdocs for scripts/site: what forges do with Markdown, and mkdocs does not.
import os
import re


def slugify(text, separator):
    """The anchor of a heading, as forges make it (check_links.pl checks links by the same rule)."""
    return re.sub(r"[^\w\- ]", "", text).replace(" ", separator).lower()


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slugify
    return config


def on_page_markdown(markdown, page, config, files):
    """Leads a link of a folder to its README, which forges show with the folder; a folder without one has no page."""

    def lead(match):
        text, target = match.groups()
        path = os.path.normpath(os.path.join(os.path.dirname(page.file.src_path), target))
        if files.get_file_from_path(path):
            return match[0]
        readme = files.get_file_from_path(os.path.join(path, "README.md"))
        return f"[{text}]({target.rstrip('/')}/README.md)" if readme else text

    return re.sub(r"\[([^\[\]]+)\]\(([^)#:\s]+)\)", lead, markdown)

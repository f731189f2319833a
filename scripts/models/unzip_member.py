# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Writes one file of a zip archive (a Python package) to standard output; with --text an HTML file
as plain text. Nothing of the package is imported or run. A failure is one line on standard error
and exit status 3.

  unzip_member.py [--text] ARCHIVE MEMBER
"""

import html.parser
import shutil
import sys
import zipfile

BLOCKS = {"p", "div", "br", "li", "ul", "ol", "tr", "h1", "h2", "h3", "h4", "h5", "section"}
HIDDEN = {"script", "style", "noscript", "svg", "nav", "template", "button", "select"}


class Text(html.parser.HTMLParser):
    """What a reader sees: text without markup, a line for each block. Of a page with an article
    only the article."""

    def __init__(self):
        super().__init__()
        self.parts = []
        self.hidden = 0

    def handle_starttag(self, tag, attrs):
        if tag in HIDDEN:
            self.hidden += 1
        elif tag == "article":
            self.parts.clear()
        elif tag in BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag):
        if tag in HIDDEN:
            self.hidden = max(0, self.hidden - 1)
        elif tag == "article":
            self.handle_data = lambda data: None
        elif tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(data.replace("\n", " "))

    def text(self):
        lines = (" ".join(line.split()) for line in "".join(self.parts).split("\n"))
        return "\n".join(line for line in lines if line) + "\n"


def main():
    arguments = sys.argv[1:]
    as_text = arguments[0] == "--text"
    archive, member = arguments[-2:]
    with zipfile.ZipFile(archive) as package, package.open(member) as file:
        if not as_text:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        else:
            reader = Text()
            reader.feed(file.read().decode())
            sys.stdout.buffer.write(reader.text().encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(3)
    except Exception as problem:  # whatever is wrong with an archive
        print(f"{type(problem).__name__}: {problem}".splitlines()[0], file=sys.stderr)
        sys.exit(3)

# SPDX-License-Identifier: GPL-2.0
"""Print docutils' remarks on reStructuredText files: "FILE:LINE: (LEVEL) TEXT".

Sphinx' own directives and roles are unknown to docutils; they are taken as they
come, and what stands in them is still parsed. Files that are not there are
passed over.
"""
import os
import re
import sys

import docutils.core
import docutils.utils
from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles


class Any(Directive):
    """A directive with any options, whose content is parsed or kept as it is."""
    optional_arguments = 100
    has_content = True

    def run(self):
        # Options of unknown directives come as field lists of their content.
        node = nodes.container()
        if self.name not in ('code-block', 'kernel-doc', 'toctree', 'kernel-abi'):
            self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def role(_name, rawtext, text, *_args, **_kwargs):
    return [nodes.literal(rawtext, text)], []


def parse(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    for name in re.findall(r'^\s*\.\. ([a-z:_-]+)::', text, re.M):
        if name not in ('note', 'warning', 'table', 'list-table', 'image', 'include'):
            directives.register_directive(name, Any)
    for name in re.findall(r':([a-z:]+):`', text):
        roles.register_local_role(name, role)
    docutils.core.publish_doctree(text, source_path=path, settings_overrides={
        'report_level': 2, 'halt_level': 5, 'file_insertion_enabled': False,
        'warning_stream': sys.stdout})


for name in sys.argv[1:]:
    if os.path.exists(name):
        parse(name)

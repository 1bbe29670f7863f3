# SPDX-License-Identifier: BSD-3-Clause
"""Reads the user's source for reports: under which `if`, loop or `try` a line is."""

import ast
import functools

_TEXT_MOST = 60


@functools.lru_cache(maxsize=64)
def _read(path):
    try:
        with open(path, "rb") as file:
            text = file.read()
        return ast.parse(text), text.decode(errors="replace")
    except (OSError, SyntaxError, ValueError):
        return None, ""


def _holds(node, line):
    return node.lineno <= line <= node.end_lineno


def _branches(node, text):
    """The branches of a statement: what is run under it, and the words for it."""
    if isinstance(node, (ast.If, ast.While)):
        head = ("if " if isinstance(node, ast.If) else "while ") + _words(node.test, text)
        yield node.body, head
        yield node.orelse, "else of " + head
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        head = f"for {_words(node.target, text)} in {_words(node.iter, text)}"
        yield node.body, head
        yield node.orelse, "else of " + head
    elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        yield node.body, "try"
        for handler in node.handlers:
            yield handler.body, "except" if handler.type is None else "except " + _words(handler.type, text)
        yield node.orelse, "else of try"
        yield node.finalbody, "finally"
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield case.body, "case " + _words(case.pattern, text)


def _words(node, text):
    words = " ".join((ast.get_source_segment(text, node) or "").split())
    return words if len(words) <= _TEXT_MOST else words[: _TEXT_MOST - 3] + "..."


def branches_around(path, line):
    """(text, line) of each branch that holds the line, outermost first, within the innermost function."""
    tree, text = _read(path)
    branches, statements = [], tree.body if tree is not None else []
    while True:
        node = next((node for node in statements if _holds(node, line)), None)
        if node is None:
            return branches
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            branches, statements = [], node.body
            continue
        held = next(
            ((body, words) for body, words in _branches(node, text) if any(_holds(each, line) for each in body)), None
        )
        if held is None:
            statements = getattr(node, "body", [])  # of a `with`; a condition's own line is in no branch
            if not isinstance(statements, list) or isinstance(node, (ast.If, ast.While, ast.For, ast.AsyncFor)):
                return branches
            continue
        statements, words = held
        branches.append((words, node.lineno))


def source_of(path, line):
    """The text of a line; empty if it is not known."""
    lines = _read(path)[1].splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""

# SPDX-License-Identifier: BSD-3-Clause
"""Reads C++ as far as the lint needs it: blanks comments and texts, and finds where functions begin and end."""

import re

# Raw strings and comments come before the tokens that may be inside them. Numbers come before apostrophes, which group
# digits.
TOKEN = re.compile(
    r'(?P<raw>R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)")'
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<text>"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<number>\b\d[\w.]*(?:'\w+)*)"
    r"|(?P<directive>^[ \t]*#(?:\\\n|[^\n])*)",
    re.S | re.M)
# The text that may be between a lambda's capture list and its body.
LAMBDA = re.compile(r"\]\s*(<[^<>]*>\s*)?(\([^{}]*\))?\s*(mutable|noexcept|->[^;{}()]*|\s)*$")
CLASS = re.compile(r"^\s*(?:(?:typedef|static|inline|constexpr|const)\s+)*(?:class|struct|union|enum)\b")
MEMBERS = re.compile(r"\)[\s\w]*:(?!:)")  # a constructor's `: a_(1), b_{2}`


def blanked(text, kinds):
    """The text with tokens of these kinds replaced by blanks. Keeps line numbers."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0)) if kind(match) in kinds else match.group(0)
    return TOKEN.sub(blank, text)


def kind(match):
    return next(name for name in ("raw", "comment", "text", "number", "directive") if match.group(name) is not None)


def raw_lines(text):
    """The numbers of the lines that a raw string touches. The string's text determines their width."""
    lines = set()
    for match in TOKEN.finditer(text):
        if kind(match) == "raw":
            first = text.count("\n", 0, match.start()) + 1
            lines.update(range(first, first + match.group(0).count("\n") + 1))
    return lines


def without_templates(head):
    """A declaration without its `template <...>`, whose `class` and `=` would mislead."""
    while match := re.match(r"\s*template\s*<", head):
        depth, end = 1, match.end()
        while depth and end < len(head):
            depth += {"<": 1, ">": -1}.get(head[end], 0)
            end += 1
        head = head[end:]
    return head


def at_depth_0(head):
    """The declaration without the text in parentheses."""
    depth, outside = 0, []
    for character in head:
        depth -= character == ")"
        if depth == 0:
            outside.append(character)
        depth += character == "("
    return "".join(outside)


def scope_of(head, inside):
    """The kind of scope that a brace after `head` opens, inside a scope of kind `inside`: function, member, value or
    scope."""
    head = without_templates(head)
    open_parentheses = head.count("(") > head.count(")")
    if LAMBDA.search(head) and not re.search(r"\[\[", head):
        return "function"
    outside = re.sub(r"operator\s*[^\s\w(]+", "operator", at_depth_0(head))
    if inside == "value" or open_parentheses or "=" in outside:
        return "value"
    if re.match(r"\s*(inline\s+)?namespace\b", head) or re.match(r"\s*extern\s*$", head):
        return "scope"
    if CLASS.match(head) and not re.search(r"\)\s*(const|noexcept|override|final|\s)*$", head):
        return "scope"
    if MEMBERS.search(outside) and re.search(r"[\w>]\s*$", head):
        return "member"
    return "function" if "(" in head else "value"


def name_of(head):
    """The name that a reader would search for: Class::function, or a test with its arguments."""
    head = " ".join(without_templates(head).split())
    test = re.search(r"^([A-Z][A-Z0-9_]+\([\w, ]*\))$", head)
    match = test or re.search(r"(operator[^\w\s]*\S*?|[\w:~]+)\s*\(", head)
    return "a lambda" if LAMBDA.search(head) or not match else match.group(1)


def functions(text):
    """(name, line of the first brace, lines from that brace to the last) for every function outside other functions."""
    code = blanked(text, {"raw", "comment", "text", "directive"})
    open_scopes, head, line, found = [], "", 1, None
    for token in re.finditer(r"[{};\n]|[^{};\n]+", code):
        part = token.group(0)
        line += part == "\n"
        inside = open_scopes[-1] if open_scopes else "scope"
        if part == "{":
            kind_of = "block" if inside in ("function", "block") else scope_of(head, inside)
            open_scopes.append(kind_of)
            if kind_of == "function":
                found = (name_of(head), line)
            head = head + " " if kind_of == "member" else ""
        elif part == "}":
            if not open_scopes:
                raise ValueError(f"line {line}: a closing brace without an opening one")
            closed = open_scopes.pop()
            if closed == "function":
                yield found[0], found[1], line - found[1] + 1
            if closed not in ("member", "value"):
                head = ""
            elif closed == "member":
                head += ")"
        elif part == ";":
            head = ""
        else:
            head += part
    if open_scopes:
        raise ValueError(f"line {line}: {len(open_scopes)} braces are not closed")

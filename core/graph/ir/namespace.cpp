// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/namespace.h>

#include <cctype>
#include <charconv>
#include <optional>

namespace rehearse::graph {
namespace {

// Python 3.11's keywords and builtins, and the names that fx binds in generated code (device, inf, ...). As in fx, None
// is not among them.
const std::unordered_set<std::string_view>& reserved_names() {
  // clang-format off
  static const std::unordered_set<std::string_view> names = {
      "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BaseExceptionGroup",
      "BlockingIOError", "BrokenPipeError", "BufferError", "BytesWarning", "ChildProcessError",
      "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError", "ConnectionResetError",
      "DeprecationWarning", "EOFError", "Ellipsis", "EncodingWarning", "EnvironmentError", "Exception",
      "ExceptionGroup", "False", "FileExistsError", "FileNotFoundError", "FloatingPointError",
      "FutureWarning", "GeneratorExit", "IOError", "ImportError", "ImportWarning", "IndentationError",
      "IndexError", "InterruptedError", "IsADirectoryError", "KeyError", "KeyboardInterrupt",
      "LookupError", "MemoryError", "ModuleNotFoundError", "NameError", "NoneType",
      "NotADirectoryError", "NotImplemented", "NotImplementedError", "OSError", "OverflowError",
      "PendingDeprecationWarning", "PermissionError", "ProcessLookupError", "RecursionError",
      "ReferenceError", "ResourceWarning", "RuntimeError", "RuntimeWarning", "StopAsyncIteration",
      "StopIteration", "SyntaxError", "SyntaxWarning", "SystemError", "SystemExit", "TabError",
      "TimeoutError", "True", "TypeError", "UnboundLocalError", "UnicodeDecodeError",
      "UnicodeEncodeError", "UnicodeError", "UnicodeTranslateError", "UnicodeWarning", "UserWarning",
      "ValueError", "Warning", "ZeroDivisionError", "__build_class__", "__debug__", "__doc__",
      "__import__", "__loader__", "__name__", "__package__", "__spec__", "abs", "aiter", "all", "and",
      "anext", "any", "as", "ascii", "assert", "async", "await", "bin", "bool", "break", "breakpoint",
      "bytearray", "bytes", "callable", "chr", "class", "classmethod", "compile", "complex", "continue",
      "copyright", "credits", "def", "del", "delattr", "device", "dict", "dir", "divmod", "elif",
      "else", "enumerate", "eval", "except", "exec", "exit", "filter", "finally", "float", "for",
      "format", "from", "frozenset", "fx_pytree", "getattr", "global", "globals", "hasattr", "hash",
      "help", "hex", "id", "if", "import", "in", "inf", "input", "int", "is", "isinstance",
      "issubclass", "iter", "lambda", "len", "license", "list", "locals", "map", "max", "memoryview",
      "min", "nan", "next", "nonlocal", "not", "object", "oct", "open", "or", "ord", "pass", "pow",
      "print", "property", "pytree", "quit", "raise", "range", "repr", "return", "reversed", "round",
      "set", "setattr", "slice", "sorted", "staticmethod", "str", "sum", "super", "torch", "try",
      "tuple", "type", "vars", "while", "with", "yield", "zip"};
  // clang-format on
  return names;
}

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return false;
  for (const char c : text) {
    if (!is_name_character(c)) return false;
  }
  return true;
}

// Replaces each run of characters that are invalid in identifiers by one '_'.
std::string to_identifier(std::string_view text) {
  std::string name;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_name_character(text[at])) {
      name += text[at];
    } else if (at == 0 || is_name_character(text[at - 1])) {
      name += '_';
    }
  }
  if (name.empty()) return "_unnamed";
  return is_digit(name.front()) ? "_" + name : name;
}

// `add_12` becomes add and 12. A name without a `_<number>` at its end has no number.
struct NumberedName {
  std::string base;
  std::optional<std::int64_t> number;
};

NumberedName split_number(const std::string& name) {
  std::size_t digits = name.size();
  while (digits > 0 && is_digit(name[digits - 1])) --digits;
  if (digits == name.size() || digits < 2 || name[digits - 1] != '_') return {name, std::nullopt};
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), number);
  if (error != std::errc()) return {name, std::nullopt};  // too large to increment
  return {name.substr(0, digits - 1), number};
}

}  // namespace

std::string Namespace::create_name(std::string_view wanted) {
  std::string candidate = is_identifier(wanted) ? std::string(wanted) : to_identifier(wanted);
  const auto [base, given] = split_number(candidate);
  std::int64_t number = given.value_or(0);
  if (!given || taken_.contains(candidate)) {
    const auto last = last_number_.find(candidate);
    number = last == last_number_.end() ? 0 : last->second;
    if (reserved_names().contains(candidate)) candidate = base + "_" + std::to_string(++number);
  }
  const bool from_the_start = number == 0 && taken_.contains(candidate);
  if (from_the_start) number = taken_up_to_[base];
  while (taken_.contains(candidate)) candidate = base + "_" + std::to_string(++number);
  if (from_the_start) taken_up_to_[base] = number;
  taken_.insert(candidate);
  last_number_[base] = number;
  return candidate;
}

std::string name_from_target(std::string_view target, bool is_function) {
  std::string_view name = target;
  if (is_function) {
    // The overload is part of an operator's name: torch.ops.<namespace>.<name>.<overload>.
    constexpr std::string_view operators = "torch.ops.";
    const std::size_t after_namespace =
        target.starts_with(operators) ? target.find('.', operators.size()) : std::string_view::npos;
    const std::size_t last = target.rfind('.');
    if (after_namespace != std::string_view::npos) {
      name = target.substr(after_namespace + 1);
    } else if (last != std::string_view::npos) {
      name = target.substr(last + 1);
    }
  } else if (target.size() >= 4 && target.starts_with("__") && target.ends_with("__")) {
    name = target.substr(2, target.size() - 4);
  }
  std::string result;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool starts_word = name[at] >= 'A' && name[at] <= 'Z' && at > 0 && name[at - 1] >= 'a' && name[at - 1] <= 'z';
    if (starts_word) result += '_';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(name[at])));
  }
  return result;
}

}  // namespace rehearse::graph

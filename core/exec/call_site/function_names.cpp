// SPDX-License-Identifier: BSD-3-Clause
#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "exec/call_site/symbolize.h"

namespace rehearse::exec {
namespace {

// The position after the closing bracket that matches `text[open]`, or the end of the text.
std::size_t behind_group(std::string_view text, std::size_t open) {
  const char opening = text[open];
  const char closing = opening == '(' ? ')' : opening == '<' ? '>' : '}';
  std::size_t depth = 0;
  for (std::size_t k = open; k < text.size(); ++k) {
    // The '>' of a return type's arrow closes nothing.
    if (text[k] == closing && !(k > 0 && text[k - 1] == '-')) {
      if (--depth == 0) return k + 1;
    } else if (text[k] == opening) {
      ++depth;
    }
  }
  return text.size();
}

// The name of an operator, which may contain brackets: "operator()", "operator<<". Empty if `text` does not begin with
// one.
std::string_view operator_at(std::string_view text) {
  constexpr std::string_view kKeyword = "operator";
  if (!text.starts_with(kKeyword)) return {};
  std::size_t end = kKeyword.size();
  if (text.substr(end).starts_with("()") || text.substr(end).starts_with("[]")) return text.substr(0, end + 2);
  while (end < text.size() && std::string_view("<>=!+-*/%&|^~,").find(text[end]) != std::string_view::npos) ++end;
  return text.substr(0, end);
}

// The text between `text[open]` and its closing bracket.
std::string_view inside(std::string_view text, std::size_t open) {
  const std::size_t end = behind_group(text, open);
  return text.substr(open + 1, end - open - 2);
}

// The position of the first comma outside of all brackets; npos if there is none.
std::size_t outer_comma(std::string_view list) {
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (list[k] == ',') return k;
    if (list[k] == '(' || list[k] == '<' || list[k] == '{') k = behind_group(list, k) - 1;
  }
  return std::string_view::npos;
}

std::optional<std::string> demangled_as_it_is(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  if (status != 0) return std::nullopt;
  return text.get();
}

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string demangled(const std::string& name) {
  if (auto text = demangled_as_it_is(name)) return *text;
  // The C++ library cannot demangle the template parameters of a lambda ("[]<class T>(T)") in clang's notation.
  std::string simpler = name;
  for (auto at = simpler.find("UlTy"); at != std::string::npos; at = simpler.find("UlTy", at)) simpler.erase(at + 2, 2);
  return demangled_as_it_is(simpler).value_or(name);
}

std::string short_name(std::string_view function) {
  std::string name;
  for (std::size_t k = 0; k < function.size();) {
    const std::string_view rest = function.substr(k);
    const bool at_word = k == 0 || !is_name_char(function[k - 1]);
    if (const auto op = at_word ? operator_at(rest) : std::string_view(); !op.empty()) {
      name += op;
      k += op.size();
    } else if (rest.starts_with("(anonymous namespace)::")) {
      k += std::string_view("(anonymous namespace)::").size();
    } else if (rest.starts_with("{lambda(") || rest.starts_with("<lambda(")) {
      name += "lambda";
      k = behind_group(function, k);
    } else if (rest.starts_with("$_")) {
      // clang's name for a lambda without another name.
      name += "lambda";
      for (k += 2; k < function.size() && std::isdigit(static_cast<unsigned char>(function[k])) != 0;) ++k;
    } else if (rest.starts_with("{default arg#")) {
      // A lambda among the default arguments of a function, or in a member's initialiser.
      k = behind_group(function, k);
      if (function.substr(k).starts_with("::")) k += 2;
    } else if (rest.starts_with(" const::")) {
      // The const of an enclosing function.
      k += std::string_view(" const").size();
    } else if (rest.starts_with('[')) {
      // " [clone .cold]" ends the name, as " const" does after the parameters.
      break;
    } else if (rest.front() == '(' || rest.front() == '<') {
      k = behind_group(function, k);
    } else if (rest.front() == ' ') {
      // The text so far was a return type, unless only qualifiers follow.
      if (rest.starts_with(" const") || rest.starts_with(" volatile") || rest.starts_with(" [") || rest == " &" ||
          rest == " &&")
        break;
      name.clear();
      ++k;
    } else {
      name += rest.front();
      ++k;
    }
  }
  // Shorten the names of a lambda and of lambdas inside it.
  constexpr std::string_view kLambda = "lambda", kCall = "lambda::operator()";
  for (auto at = name.find(kCall); at != std::string::npos; at = name.find(kCall, at))
    name.replace(at, kCall.size(), kLambda);
  // Without full debug information, an inlined lambda has only this name.
  if (name == "operator()") name = "lambda";
  return name;
}

std::string_view wrapped_callable(std::string_view function) {
  constexpr std::string_view kFunction = "std::_Function_handler<";
  constexpr std::string_view kThread = "std::thread::_Invoker<std::tuple<";
  std::string_view callable;
  if (function.starts_with(kFunction)) {
    const auto arguments = inside(function, kFunction.size() - 1);
    const auto comma = outer_comma(arguments);
    if (comma != std::string_view::npos) callable = arguments.substr(comma + 1);
  } else if (const auto at = function.find(kThread); function.starts_with("std::thread::") && at != function.npos) {
    const auto arguments = inside(function, at + kThread.size() - 1);
    callable = arguments.substr(0, outer_comma(arguments));
  }
  while (callable.starts_with(' ')) callable.remove_prefix(1);
  while (callable.ends_with(' ')) callable.remove_suffix(1);
  return callable.find("(*)") == std::string_view::npos ? callable : std::string_view();
}

std::string_view outermost_name(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) return {};
  mangled.remove_prefix(2);
  // Skip the codes for local names (Z), nesting (N), and qualifiers of member functions and static functions.
  while (!mangled.empty() && std::string_view("ZNKVROL").find(mangled.front()) != std::string_view::npos)
    mangled.remove_prefix(1);
  if (mangled.size() >= 2 && mangled[0] == 'S' &&
      std::string_view("tabsiod").find(mangled[1]) != std::string_view::npos)
    return "std";
  std::size_t length = 0;
  while (!mangled.empty() && std::isdigit(static_cast<unsigned char>(mangled.front())) != 0) {
    length = length * 10 + static_cast<std::size_t>(mangled.front() - '0');
    mangled.remove_prefix(1);
  }
  return mangled.substr(0, length);
}

}  // namespace rehearse::exec

// SPDX-License-Identifier: BSD-3-Clause
#include "graph/pt2/sympy_text.h"

#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include <rehearse/graph/argument.h>

namespace rehearse::graph {
namespace {

// How tightly an operator binds. A looser text inside a tighter one needs parentheses.
enum Binding { kComparison, kSum, kProduct, kPower, kAtom };

struct Text {
  std::string text;
  Binding binding = kAtom;
};

std::string bracketed(const Text& inner, Binding outer) {
  return inner.binding < outer ? "(" + inner.text + ")" : inner.text;
}

std::string join(const std::vector<Text>& items, const std::string& sign, Binding outer) {
  std::string joined;
  for (const Text& item : items) joined += (joined.empty() ? "" : sign) + bracketed(item, outer);
  return joined;
}

Text call(const std::string& name, const std::vector<Text>& items) {
  return {name + "(" + join(items, ", ", kComparison) + ")", kAtom};
}

Text build(const std::string& name, std::vector<Text> items) {
  const bool one = items.size() == 1;
  const bool two = items.size() == 2;
  if ((name == "Symbol" || name == "Dummy" || name == "Integer" || name == "Float") && !items.empty()) {
    const bool negative = items[0].text.starts_with('-');
    return {items[0].text, negative ? kSum : kAtom};
  }
  if (name == "Add" && !items.empty()) return {join(items, " + ", kSum), kSum};
  if (name == "Mul" && !items.empty()) return {join(items, "*", kProduct), kProduct};
  if (name == "Rational" && two) return {join(items, "/", kPower), kProduct};
  if (name == "Pow" && two) return {join(items, "**", kAtom), kPower};
  if (name == "FloorDiv" && two) return {"(" + join(items, "//", kAtom) + ")", kAtom};
  if ((name == "PythonMod" || name == "Mod") && two) return call("Mod", items);
  if (name == "GreaterThan" && two) return {join(items, " >= ", kSum), kComparison};
  if (name == "LessThan" && two) return {join(items, " <= ", kSum), kComparison};
  if (name == "StrictGreaterThan" && two) return {join(items, " > ", kSum), kComparison};
  if (name == "StrictLessThan" && two) return {join(items, " < ", kSum), kComparison};
  if (name == "Equality" && two) return call("Eq", items);
  if (name == "Unequality" && two) return call("Ne", items);
  if (name == "Not" && one) return {"~" + bracketed(items[0], kAtom), kPower};
  return call(name, items);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::optional<Text> whole() {
    std::optional<Text> parsed = term();
    skip_spaces();
    return rest_.empty() ? parsed : std::nullopt;
  }

 private:
  // Parses Name, Name(term, ..., key=term), 'text', or a number.
  std::optional<Text> term() {
    if (depth_ == kMaxNesting) return std::nullopt;
    ++depth_;
    std::optional<Text> parsed = term_at_this_depth();
    --depth_;
    return parsed;
  }

  std::optional<Text> term_at_this_depth() {
    skip_spaces();
    if (rest_.empty()) return std::nullopt;
    if (rest_.front() == '\'' || rest_.front() == '"') return quoted();
    const std::string word = take_word();
    if (word.empty()) return std::nullopt;
    if (!take('(')) return Text{word, kAtom};
    std::vector<Text> items;
    for (bool first = true; !take(')'); first = false) {
      if (!first && !take(',')) return std::nullopt;
      std::optional<Text> item = term();
      if (!item) return std::nullopt;
      if (!take('=')) {
        items.push_back(*std::move(item));
      } else if (!term()) {  // an assumption about a symbol, which is ignored
        return std::nullopt;
      }
    }
    return build(word, std::move(items));
  }

  std::optional<Text> quoted() {
    const char quote = rest_.front();
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    Text text{std::string(rest_.substr(1, end - 1)), kAtom};
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::string take_word() {
    std::size_t end = rest_.starts_with('-') ? 1 : 0;
    while (end < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[end])) || rest_[end] == '_' || rest_[end] == '.')) {
      ++end;
    }
    const std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

  bool take(char expected) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace

std::string sympy_text(std::string_view constructors) {
  const std::optional<Text> parsed = Parser(constructors).whole();
  return parsed ? parsed->text : std::string(constructors);
}

}  // namespace rehearse::graph

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// Reads the text form word by word and tracks the place. Errors are GraphErrors with that place.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end();
  bool next_is(std::string_view word);  // consumes nothing; `word` does not become the last word
  bool take(std::string_view word);     // consumes `word` if it is next
  void expect(std::string_view word);
  std::string word();    // letters, digits, '_', '+', '-' and '.': names and numbers; not empty
  std::string quoted();  // a string in double quotes
  [[noreturn]] void fail(const std::string& message) const;  // at the beginning of the last word

 private:
  void skip_spaces();

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t last_ = 0;  // beginning of the last word
};

// Adds one level of nesting during its life. Limits recursion, so that no text can exhaust the stack.
class Nesting {
 public:
  Nesting(int& depth, int limit, const Scanner& scanner) : depth_(depth) {
    if (++depth_ > limit) scanner.fail("is nested deeper than " + std::to_string(limit));
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

// The nodes that the scanner has passed.
using NodesByName = std::unordered_map<std::string, Node*>;

// Reads values of the text form. The scanner reports errors.
class ValueParser {
 public:
  explicit ValueParser(Scanner& scanner) : scanner_(scanner) {}

  Argument value(const NodesByName& nodes);
  List list(const NodesByName& nodes);
  Dict dict(const NodesByName& nodes);

 private:
  List items(std::string_view close, const NodesByName& nodes);
  Argument call(const std::string& name, const NodesByName& nodes);
  Argument number(const std::string& word);
  double nan_of(const std::string& word);
  double real(const Argument& value);
  template <class T>
  Argument known(const std::optional<T>& value, const std::string& kind, const std::string& content);

  Scanner& scanner_;
  int depth_ = 0;
};

}  // namespace rehearse::graph

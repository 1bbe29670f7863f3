// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <rehearse/graph/node.h>

#include "graph/text/scanner.h"

namespace rehearse::graph {

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

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/node.h>
#include <rehearse/graph/text.h>

#include "graph/ir/repeated_name.h"
#include "graph/text/enum_names.h"
#include "graph/text/metadata_text.h"

namespace rehearse::graph {
namespace {

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

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

void Scanner::fail(const std::string& message) const {
  const std::string_view before = text_.substr(0, last_);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? last_ + 1 : last_ - newline;
  throw GraphError("", "line " + std::to_string(line) + ", column " + std::to_string(column), message);
}

void Scanner::skip_spaces() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
}

bool Scanner::at_end() {
  skip_spaces();
  last_ = at_;
  return at_ == text_.size();
}

bool Scanner::next_is(std::string_view word) {
  skip_spaces();
  return text_.substr(at_).starts_with(word);
}

bool Scanner::take(std::string_view word) {
  if (!next_is(word)) return false;
  last_ = at_;
  at_ += word.size();
  return true;
}

void Scanner::expect(std::string_view word) {
  if (take(word)) return;
  last_ = at_;
  fail("there must be '" + std::string(word) + "' here");
}

std::string Scanner::word() {
  skip_spaces();
  last_ = at_;
  const std::size_t start = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '+' && c != '-' && c != '.') break;
    ++at_;
  }
  if (at_ == start) fail("there must be a name or a value here");
  return std::string(text_.substr(start, at_ - start));
}

std::string Scanner::quoted() {
  expect("\"");
  std::string out;
  while (true) {
    if (at_ == text_.size()) fail("the string has no end");
    const char c = text_[at_++];
    if (c == '"') return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char code = at_ < text_.size() ? text_[at_++] : '\0';
    if (code == '"' || code == '\\') {
      out += code;
    } else if (code == 'n') {
      out += '\n';
    } else if (code == 'u' && at_ + 4 <= text_.size()) {
      unsigned value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, value, 16);
      if (error != std::errc() || end != text_.data() + at_ + 4 || value > 0x7f)
        fail("the string has an unknown escape");
      out += static_cast<char>(value);
      at_ += 4;
    } else {
      fail("the string has an unknown escape");
    }
  }
}

List ValueParser::list(const NodesByName& nodes) {
  scanner_.expect("[");
  return items("]", nodes);
}

List ValueParser::items(std::string_view close, const NodesByName& nodes) {
  List list;
  while (!scanner_.take(close)) {
    if (!list.empty()) scanner_.expect(",");
    list.push_back(value(nodes));
  }
  return list;
}

Dict ValueParser::dict(const NodesByName& nodes) {
  Dict dict;
  scanner_.expect("{");
  while (!scanner_.take("}")) {
    if (!dict.empty()) scanner_.expect(",");
    std::string key = scanner_.quoted();
    scanner_.expect(":");
    dict.emplace_back(std::move(key), value(nodes));
  }
  if (const auto key = repeated_name(dict)) scanner_.fail("the key \"" + *key + "\" is given twice before this");
  return dict;
}

Argument ValueParser::value(const NodesByName& nodes) {
  const Nesting nesting(depth_, kMaxTextNesting, scanner_);
  if (scanner_.take("%")) {
    const std::string name = scanner_.word();
    const auto found = nodes.find(name);
    if (found == nodes.end()) scanner_.fail("there is no node '" + name + "' before this");
    return found->second;
  }
  if (scanner_.next_is("\"")) return scanner_.quoted();
  if (scanner_.next_is("[")) return list(nodes);
  if (scanner_.next_is("{")) return dict(nodes);
  const std::string word = scanner_.word();
  if (scanner_.take("(")) return call(word, nodes);
  if (word == "none") return {};
  if (word == "true") return true;
  if (word == "false") return false;
  if (word == "...") return Ellipsis{};
  return number(word);
}

Argument ValueParser::number(const std::string& word) {
  if (word == "nan" || word == "-nan")
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), word == "nan" ? 1.0 : -1.0);
  const char* end = word.data() + word.size();
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(word.data(), end, whole); error == std::errc() && at == end)
    return whole;
  const std::size_t digits = word.starts_with('-') ? 1 : 0;
  if (word.size() > digits && std::all_of(word.begin() + static_cast<std::ptrdiff_t>(digits), word.end(), is_decimal)) {
    scanner_.fail(word + " does not fit into 64 bits");
  }
  double real = 0;
  const auto [at, error] = std::from_chars(word.data(), end, real);
  if (error != std::errc() || at != end) scanner_.fail("'" + word + "' is no value");
  return real;
}

// Reads a NaN from all of its 64 bits, such as 0x7ff8000000000001.
double ValueParser::nan_of(const std::string& word) {
  std::uint64_t bits = 0;
  const char* end = word.data() + word.size();
  const auto [at, error] = word.starts_with("0x") ? std::from_chars(word.data() + 2, end, bits, 16)
                                                  : std::from_chars_result{end, std::errc::invalid_argument};
  const auto value = std::bit_cast<double>(bits);
  if (error != std::errc() || at != end || !std::isnan(value)) scanner_.fail("'" + word + "' is no NaN's bits");
  return value;
}

double ValueParser::real(const Argument& value) {
  if (!value.is<double>()) scanner_.fail("there must be a number with a point here");
  return value.as<double>();
}

template <class T>
Argument ValueParser::known(const std::optional<T>& value, const std::string& kind, const std::string& content) {
  if (!value) scanner_.fail("'" + content + "' is no " + kind);
  return *value;
}

// Reads what follows `name(`.
Argument ValueParser::call(const std::string& name, const NodesByName& nodes) {
  if (name == "slice" || name == "complex") {
    const List parts = items(")", nodes);
    if (name == "slice" && parts.size() == 3) return Slice(parts[0], parts[1], parts[2]);
    if (name == "complex" && parts.size() == 2) return std::complex<double>(real(parts[0]), real(parts[1]));
    scanner_.fail(name + " has not so many parts");
  }
  const std::string content = scanner_.next_is("\"") ? scanner_.quoted() : scanner_.word();
  scanner_.expect(")");
  if (name == "sym") return SymExpr{content};
  if (name == "nan") return nan_of(content);
  if (name == "device") return known(device_of(content), name, content);
  if (name == "dtype") return known(dtype_of(content), name, content);
  if (name == "layout") return known(layout_of(content), name, content);
  if (name == "memory_format") return known(memory_format_of(content), name, content);
  scanner_.fail("'" + name + "' is no kind of value");
}

class Parser {
 public:
  explicit Parser(std::string_view text) : scanner_(text) {}

  std::shared_ptr<GraphModule> whole() {
    auto module = parse_module();
    if (!scanner_.at_end()) scanner_.fail("there must be nothing after the module");
    return module;
  }

 private:
  std::shared_ptr<GraphModule> parse_module() {
    scanner_.expect("graph_module");
    const Nesting nesting(module_depth_, kMaxNesting + 1, scanner_);
    const std::size_t number = modules_.size();
    modules_.emplace_back();
    auto module = std::make_shared<GraphModule>(scanner_.quoted());
    scanner_.expect("{");
    NodesByName nodes;
    while (!scanner_.take("}")) {
      if (scanner_.take("attribute")) {
        parse_attribute(*module);
      } else if (scanner_.take("submodule")) {
        parse_submodule(*module);
      } else {
        parse_node(*module, nodes);
      }
    }
    modules_[number] = module;
    return module;
  }

  void parse_submodule(GraphModule& module) {
    const std::string name = scanner_.quoted();
    auto submodule = scanner_.take("shared") ? known_module() : parse_module();
    const std::size_t before = module.submodules().size();
    checked([&] { module.set_submodule(name, std::move(submodule)); });
    if (module.submodules().size() == before) scanner_.fail("there are two submodules '" + name + "'");
  }

  // Reads a module by its number in the text. A module that is still open is refused, because it would contain itself.
  std::shared_ptr<GraphModule> known_module() {
    const Argument number = values_.value({});
    const auto* at = number.get_if<std::int64_t>();
    const bool is_known = at != nullptr && *at >= 0 && *at < static_cast<std::int64_t>(modules_.size());
    if (!is_known || modules_[static_cast<std::size_t>(*at)] == nullptr)
      scanner_.fail("no module of this number ends before this");
    return modules_[static_cast<std::size_t>(*at)];
  }

  void parse_attribute(GraphModule& module) {
    const std::string name = scanner_.quoted();
    Attribute attribute;
    Dict fields;
    for (auto& [key, value] : values_.dict({})) {
      if (key == "ddp_ignored" && value.is<bool>()) {
        attribute.ddp_ignored = value.as<bool>();
      } else {
        fields.emplace_back(key, value);
      }
    }
    const std::size_t before = module.attributes().size();
    checked([&] {
      attribute.meta = tensor_from(fields);
      module.set_attribute(name, std::move(attribute));
    });
    if (module.attributes().size() == before) scanner_.fail("there are two attributes '" + name + "'");
  }

  void parse_node(GraphModule& module, NodesByName& nodes) {
    scanner_.expect("%");
    const std::string name = scanner_.word();
    scanner_.expect("=");
    const std::string spelled = scanner_.word();
    const std::optional<Op> op = op_from_string(spelled);
    if (!op) scanner_.fail("'" + spelled + "' is no op");
    std::string target = scanner_.quoted();
    List args = values_.list(nodes);
    Dict kwargs = scanner_.next_is("{") ? values_.dict(nodes) : Dict{};
    Dict meta = scanner_.take(";") ? values_.dict(nodes) : Dict{};
    checked([&] {
      Node& node = module.graph().create_node(*op, std::move(target), std::move(args), std::move(kwargs), name);
      if (node.name() != name) throw GraphError(name, "name", "is taken, reserved, or no identifier");
      node.meta() = metadata_from(meta);
      nodes[name] = &node;
    });
  }

  // Adds the place in the text to errors.
  template <class Action>
  void checked(Action&& action) {
    try {
      action();
    } catch (const std::invalid_argument& error) {
      scanner_.fail(error.what());
    } catch (const GraphError& error) {
      scanner_.fail(error.what());
    }
  }

  Scanner scanner_;
  ValueParser values_{scanner_};
  std::vector<std::shared_ptr<GraphModule>> modules_;  // in order of their beginnings; null while open
  int module_depth_ = 0;
};

}  // namespace

std::shared_ptr<GraphModule> parse_graph_module(std::string_view text) { return Parser(text).whole(); }

}  // namespace rehearse::graph

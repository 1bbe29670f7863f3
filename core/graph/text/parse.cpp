// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <unordered_map>

#include <rehearse/graph/text.h>

#include "graph/ir/repeated_name.h"
#include "graph/text/enum_names.h"
#include "graph/text/metadata_text.h"
#include "graph/text/scanner.h"

namespace rehearse::graph {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : scanner_(text) {}

  std::shared_ptr<GraphModule> whole() {
    auto module = parse_module();
    if (!scanner_.at_end()) scanner_.fail("there must be nothing after the module");
    return module;
  }

 private:
  using Nodes = std::unordered_map<std::string, Node*>;

  // One level of what stands in one another; the text must not decide how deep the calls go.
  class Level {
   public:
    Level(int& depth, int limit, const Scanner& scanner) : depth_(depth) {
      if (++depth_ > limit) scanner.fail("is nested deeper than " + std::to_string(limit));
    }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& depth_;
  };

  std::shared_ptr<GraphModule> parse_module() {
    scanner_.expect("graph_module");
    const Level level(module_depth_, kMaxNesting + 1, scanner_);
    const std::size_t number = modules_.size();
    modules_.emplace_back();
    auto module = std::make_shared<GraphModule>(scanner_.quoted());
    scanner_.expect("{");
    Nodes nodes;
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

  // By its number among the modules of the text; one that is still open would contain itself.
  std::shared_ptr<GraphModule> known_module() {
    const Argument number = this->number(scanner_.word());
    const auto* at = number.get_if<std::int64_t>();
    const bool is_known = at != nullptr && *at >= 0 && *at < static_cast<std::int64_t>(modules_.size());
    if (!is_known || modules_[static_cast<std::size_t>(*at)] == nullptr) scanner_.fail("no module of this number ends before this");
    return modules_[static_cast<std::size_t>(*at)];
  }

  void parse_attribute(GraphModule& module) {
    const std::string name = scanner_.quoted();
    Attribute attribute;
    Dict fields;
    for (auto& [key, value] : dict({})) {
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

  void parse_node(GraphModule& module, Nodes& nodes) {
    scanner_.expect("%");
    const std::string name = scanner_.word();
    scanner_.expect("=");
    const std::string spelled = scanner_.word();
    const std::optional<Op> op = op_from_string(spelled);
    if (!op) scanner_.fail("'" + spelled + "' is no op");
    std::string target = scanner_.quoted();
    List args = list(nodes);
    Dict kwargs = scanner_.next_is("{") ? dict(nodes) : Dict{};
    Dict meta = scanner_.take(";") ? dict(nodes) : Dict{};
    checked([&] {
      Node& node = module.graph().create_node(*op, std::move(target), std::move(args), std::move(kwargs), name);
      if (node.name() != name) throw GraphError(name, "name", "is taken, reserved, or no identifier");
      node.meta() = metadata_from(meta);
      nodes[name] = &node;
    });
  }

  // Errors of the pieces get the place in the text.
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

  List list(const Nodes& nodes) {
    scanner_.expect("[");
    return items("]", nodes);
  }

  List items(std::string_view close, const Nodes& nodes) {
    List list;
    while (!scanner_.take(close)) {
      if (!list.empty()) scanner_.expect(",");
      list.push_back(argument(nodes));
    }
    return list;
  }

  Dict dict(const Nodes& nodes) {
    Dict dict;
    scanner_.expect("{");
    while (!scanner_.take("}")) {
      if (!dict.empty()) scanner_.expect(",");
      std::string key = scanner_.quoted();
      scanner_.expect(":");
      dict.emplace_back(std::move(key), argument(nodes));
    }
    if (const auto key = repeated_name(dict)) scanner_.fail("the key \"" + *key + "\" is given twice before this");
    return dict;
  }

  Argument argument(const Nodes& nodes) {
    const Level level(value_depth_, kMaxTextNesting, scanner_);
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

  Argument number(const std::string& word) {
    const char* end = word.data() + word.size();
    std::int64_t whole = 0;
    if (const auto [at, error] = std::from_chars(word.data(), end, whole); error == std::errc() && at == end) return whole;
    const std::size_t digits = word.starts_with('-') ? 1 : 0;
    if (word.size() > digits && std::all_of(word.begin() + static_cast<std::ptrdiff_t>(digits), word.end(), is_digit)) {
      scanner_.fail(word + " does not fit into 64 bits");
    }
    double real = 0;
    const auto [at, error] = std::from_chars(word.data(), end, real);
    if (error != std::errc() || at != end) scanner_.fail("'" + word + "' is no value");
    return real;
  }

  double real(const Argument& value) {
    if (!value.is<double>()) scanner_.fail("there must be a number with a point here");
    return value.as<double>();
  }

  // What follows `name(`.
  Argument call(const std::string& name, const Nodes& nodes) {
    if (name == "slice" || name == "complex") {
      const List parts = items(")", nodes);
      if (name == "slice" && parts.size() == 3) return Slice(parts[0], parts[1], parts[2]);
      if (name == "complex" && parts.size() == 2) return std::complex<double>(real(parts[0]), real(parts[1]));
      scanner_.fail(name + " has not so many parts");
    }
    const std::string content = scanner_.next_is("\"") ? scanner_.quoted() : scanner_.word();
    scanner_.expect(")");
    if (name == "sym") return SymExpr{content};
    if (name == "device") return known(device_of(content), name, content);
    if (name == "dtype") return known(dtype_of(content), name, content);
    if (name == "layout") return known(layout_of(content), name, content);
    if (name == "memory_format") return known(memory_format_of(content), name, content);
    scanner_.fail("'" + name + "' is no kind of value");
  }

  template <class T>
  Argument known(const std::optional<T>& value, const std::string& kind, const std::string& content) {
    if (!value) scanner_.fail("'" + content + "' is no " + kind);
    return *value;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  Scanner scanner_;
  std::vector<std::shared_ptr<GraphModule>> modules_;  // in the order in which they begin; null until they end
  int module_depth_ = 0;
  int value_depth_ = 0;
};

}  // namespace

std::shared_ptr<GraphModule> parse_graph_module(std::string_view text) { return Parser(text).whole(); }

}  // namespace rehearse::graph

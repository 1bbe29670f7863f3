// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <stdexcept>
#include <unordered_map>

#include <rehearse/graph/text.h>

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

  std::shared_ptr<GraphModule> parse_module() {
    scanner_.expect("graph_module");
    auto module = std::make_shared<GraphModule>(scanner_.quoted());
    scanner_.expect("{");
    Nodes nodes;
    while (!scanner_.take("}")) {
      if (scanner_.take("attribute")) {
        parse_attribute(*module);
      } else if (scanner_.take("submodule")) {
        const std::string name = scanner_.quoted();
        auto submodule = parse_module();
        checked([&] { module->set_submodule(name, std::move(submodule)); });
      } else {
        parse_node(*module, nodes);
      }
    }
    return module;
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
    checked([&] {
      attribute.meta = tensor_from(fields);
      module.set_attribute(name, std::move(attribute));
    });
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
    return dict;
  }

  Argument argument(const Nodes& nodes) {
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
    if (name == "device") {
      Argument device;
      try {
        device = c10::Device(content);
      } catch (const c10::Error&) {
        scanner_.fail("'" + content + "' is no device");
      }
      return device;
    }
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

  Scanner scanner_;
};

}  // namespace

std::shared_ptr<GraphModule> parse_graph_module(std::string_view text) { return Parser(text).whole(); }

}  // namespace rehearse::graph

// SPDX-License-Identifier: BSD-3-Clause
#include <stdexcept>

#include <rehearse/graph/text.h>

#include "graph/text/metadata_text.h"
#include "graph/text/parse_value.h"

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

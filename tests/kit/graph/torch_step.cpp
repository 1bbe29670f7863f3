// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <optional>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/node.h>

#include "kit/graph/dynamo_steps.h"
#include "kit/graph/overloads.h"

namespace rehearse::graph {
namespace {

// A call of an ATen operator: its name without the namespace, and positional arguments.
struct AtenCall {
  std::string op;
  List args;
};

// Parameters with their defaults; a parameter without a default is required.
using ParameterDefaults = std::vector<std::pair<std::string_view, std::optional<Argument>>>;

struct Function {
  ParameterDefaults parameters;
  AtenCall (*call)(const Node& node, const List& given);  // `given`: one for each parameter, in order
};

bool is_true(const Argument& argument) { return argument.is<bool>() && argument.as<bool>(); }

AtenCall relu(const Node&, const List& a) { return {is_true(a[1]) ? "relu_" : "relu", {a[0]}}; }
AtenCall dropout(const Node&, const List& a) { return {is_true(a[3]) ? "dropout_" : "dropout", {a[0], a[1], a[2]}}; }
AtenCall layer_norm(const Node&, const List& a) { return {"layer_norm", a}; }
AtenCall group_norm(const Node&, const List& a) { return {"group_norm", a}; }

AtenCall batch_norm(const Node&, const List& a) {
  const bool cudnn_enabled = true;
  return {"batch_norm", {a[0], a[3], a[4], a[1], a[2], a[5], a[6], a[7], cudnn_enabled}};
}

AtenCall embedding(const Node& node, const List& a) {
  if (!a[3].is_none()) throw GraphError(node.name(), "max_norm", "cannot be run: it changes the weight");
  if (a[2].is<std::int64_t>() && a[2].as<std::int64_t>() < 0) {  // would need the rows of a weight that is not here yet
    throw GraphError(node.name(), "padding_idx", "cannot be run: it is negative. Give the number of the row instead");
  }
  const Argument padding = a[2].is_none() ? Argument(-1) : a[2];
  return {"embedding", {a[1], a[0], padding, a[5], a[6]}};
}

const std::map<std::string_view, Function>& functions() {
  const Argument none;
  static const std::map<std::string_view, Function> known = {
      {"relu", {{{"input", {}}, {"inplace", false}}, relu}},
      {"dropout", {{{"input", {}}, {"p", 0.5}, {"training", true}, {"inplace", false}}, dropout}},
      {"layer_norm",
       {{{"input", {}}, {"normalized_shape", {}}, {"weight", none}, {"bias", none}, {"eps", 1e-5}}, layer_norm}},
      {"group_norm",
       {{{"input", {}}, {"num_groups", {}}, {"weight", none}, {"bias", none}, {"eps", 1e-5}}, group_norm}},
      {"batch_norm",
       {{{"input", {}},
         {"running_mean", {}},
         {"running_var", {}},
         {"weight", none},
         {"bias", none},
         {"training", false},
         {"momentum", 0.1},
         {"eps", 1e-5}},
        batch_norm}},
      {"embedding",
       {{{"input", {}},
         {"weight", {}},
         {"padding_idx", none},
         {"max_norm", none},
         {"norm_type", 2.0},
         {"scale_grad_by_freq", false},
         {"sparse", false}},
        embedding}},
  };
  return known;
}

List bound(const Node& node, const ParameterDefaults& parameters) {
  if (node.args().size() > parameters.size()) {
    throw GraphError(node.name(), "args",
                     "there are " + std::to_string(node.args().size()) + ", and '" + node.target() + "' takes " +
                         std::to_string(parameters.size()));
  }
  for (const auto& [name, argument] : node.kwargs()) {
    const auto at =
        std::find_if(parameters.begin(), parameters.end(), [&](const auto& known) { return known.first == name; });
    if (at == parameters.end())
      throw GraphError(node.name(), "kwargs." + name, "'" + node.target() + "' takes no argument of this name");
    if (static_cast<std::size_t>(at - parameters.begin()) < node.args().size()) {
      throw GraphError(node.name(), "kwargs." + name, "is given by position too");
    }
  }
  List given = node.args();
  for (std::size_t i = given.size(); i < parameters.size(); ++i) {
    const auto& [name, fallback] = parameters[i];
    const Argument* named = node.kwarg(name);
    if (named == nullptr && !fallback) throw GraphError(node.name(), std::string(name), "is missing");
    given.push_back(named != nullptr ? *named : *fallback);
  }
  return given;
}

// The ATen call for a function of torch.nn.functional (torch/nn/functional.py of PyTorch 2.11); nothing for other
// targets. Throws GraphError for an unknown function, for missing, repeated or unknown arguments, for max_norm of an
// embedding, which would change the weight, and for a negative padding_idx, which would count rows from the end.
std::optional<AtenCall> functional_call(const Node& node) {
  constexpr std::string_view prefix = "torch.nn.functional.";
  const std::string_view target = node.target();
  if (!target.starts_with(prefix)) return std::nullopt;
  const auto found = functions().find(target.substr(prefix.size()));
  if (found == functions().end()) {
    std::string known;
    for (const auto& [name, function] : functions()) known += (known.empty() ? "" : ", ") + std::string(name);
    throw GraphError(node.name(), "target",
                     "'" + node.target() + "' cannot be run; of torch.nn.functional these can: " + known);
  }
  return found->second.call(node, bound(node, found->second.parameters));
}

class AtenStep : public Step {
 public:
  AtenStep(const Node& node, AtenCall call, Dict kwargs)
      : node_(node), args_(std::move(call.args)), kwargs_(std::move(kwargs)), op_(call.op) {}

  bool is_known() const { return !op_.empty(); }
  c10::IValue run(const ValueOf& value_of) const override { return op_.call(node_, args_, kwargs_, 0, value_of); }

 private:
  const Node& node_;
  List args_;
  Dict kwargs_;
  Overloads op_;
};

// torch._check(condition, message). The message is a Python function, which a graph does not contain.
class CheckStep : public Step {
 public:
  explicit CheckStep(const Node& node) : node_(node) {
    if (node.args().empty()) throw GraphError(node.name(), "args", "a check needs a condition");
  }
  c10::IValue run(const ValueOf& value_of) const override {
    const c10::IValue condition = to_ivalue(node_.args()[0], value_of, node_, "args[0]");
    if (!condition.isBool()) throw GraphError(node_.name(), "args[0]", "must be a bool, and is " + condition.tagKind());
    if (!condition.toBool()) throw GraphError(node_.name(), "args[0]", "the check failed");
    return {};
  }

 private:
  const Node& node_;
};

// The name of the ATen operator for targets like `torch.relu` and `torch._C._nn.linear`; empty for other targets.
std::string_view name_in_torch(std::string_view target) {
  for (const std::string_view prefix : {"torch._C._nn.", "torch."}) {
    if (!target.starts_with(prefix)) continue;
    const std::string_view name = target.substr(prefix.size());
    if (name.find('.') == std::string_view::npos) return name;
  }
  return "";
}

}  // namespace

std::unique_ptr<Step> make_torch_step(const Node& node) {
  if (node.target() == "torch._check") return std::make_unique<CheckStep>(node);
  if (auto call = functional_call(node)) return std::make_unique<AtenStep>(node, *std::move(call), Dict{});
  const std::string_view name = name_in_torch(node.target());
  auto step = std::make_unique<AtenStep>(node, AtenCall{std::string(name), node.args()}, node.kwargs());
  return step->is_known() ? std::move(step) : nullptr;
}

}  // namespace rehearse::graph

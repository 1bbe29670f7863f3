// SPDX-License-Identifier: BSD-3-Clause
#include "core/graph/check/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <rehearse_internal/graph/operators.h>

#include "core/graph/check/metadata_check.h"
#include "graph/ir/submodules.h"
#include "graph/run/call/bind_arguments.h"
#include "graph/run/call/to_ivalue.h"

namespace rehearse::graph {
namespace {

class Verifier {
 public:
  using Seen = std::unordered_set<const GraphModule*>;  // check each module once, at its first use

  Verifier(const GraphModule& module, std::string prefix, Seen& seen, std::vector<Problem>& problems)
      : module_(module), prefix_(std::move(prefix)), seen_(seen), problems_(problems) {}

  void run() {
    const Graph& graph = module_.graph();
    MetadataCheck metadata(graph,
                           [this](const std::string& field, const std::string& message) { add(field, message); });
    for (const Node& node : graph) {
      node_ = &node;
      if (!names_.insert(node.name()).second) add("name", "another node has it");
      check_inputs();
      check_users();
      check_op();
      check_schema();
      metadata.check(node);
      before_.insert(&node);
    }
    node_ = nullptr;
    if (!graph.empty()) check_output(graph);
    for (const auto& [name, submodule] : module_.submodules()) {
      if (seen_.insert(submodule.get()).second) Verifier(*submodule, prefix_ + name + "/", seen_, problems_).run();
    }
  }

 private:
  void add(const std::string& field, const std::string& message) {
    problems_.push_back({node_ == nullptr ? prefix_ : prefix_ + node_->name(), field, message});
  }

  void check_inputs() {
    for (const Node* input : node_->input_nodes()) {
      if (!before_.contains(input)) add("args", "'" + input->name() + "' does not stand before it");
    }
    edges_ += node_->input_nodes().size();
  }

  // Every listed user must use the node. check_output() also compares the total number of users with the total number
  // of inputs. Together, the two checks show that the lists of users and of inputs agree.
  void check_users() {
    uses_ += node_->users().size();
    for (const Node* user : node_->users()) {
      if (!uses(*user, *node_)) add("users", "'" + user->name() + "' does not use it");
    }
  }

  // check_users() calls this once for each input of `user`. For nodes with many inputs, a set keeps the cost linear.
  bool uses(const Node& user, const Node& input) {
    const std::vector<Node*>& inputs = user.input_nodes();
    if (inputs.size() <= 16) return std::find(inputs.begin(), inputs.end(), &input) != inputs.end();
    auto& known = wide_[&user];
    if (known.empty()) known.insert(inputs.begin(), inputs.end());
    return known.contains(&input);
  }

  void check_output(const Graph& graph) {
    std::size_t outputs = 0;
    for (const Node& node : graph) outputs += node.op() == Op::Output ? 1 : 0;
    if (outputs != 1) add("output", "there must be one, and there are " + std::to_string(outputs));
    if (edges_ != uses_)
      add("users", "there are " + std::to_string(uses_) + " of them for " + std::to_string(edges_) + " inputs");
    if (outputs == 1 && graph.last()->op() != Op::Output) add("output", "must be the last node");
  }

  void check_op() {
    const std::size_t count = node_->args().size();
    const std::string& target = node_->target();
    if (target.empty()) add("target", "is empty");
    switch (node_->op()) {
      case Op::Placeholder:
        if (count > 1 || !node_->kwargs().empty()) add("args", "a placeholder has at most one, its default");
        break;
      case Op::GetAttr:
        if (count != 0 || !node_->kwargs().empty()) add("args", "an attribute takes none");
        if (module_.find_attribute(target) == nullptr && module_.find_submodule(target) == nullptr) {
          add("target", "there is no attribute or submodule '" + target + "'");
        }
        break;
      case Op::CallModule:
        if (module_.find_submodule(target) == nullptr) add("target", "there is no submodule '" + target + "'");
        break;
      case Op::CallMethod:
        if (count == 0) add("args", "a method needs a self");
        break;
      case Op::Output:
        if (count != 1 || !node_->kwargs().empty()) add("args", "an output has exactly one");
        if (!node_->users().empty()) add("users", "nobody can use the output");
        break;
      case Op::CallFunction:
        break;
    }
  }

  void check_schema() {
    if (node_->op() != Op::CallFunction) return;
    const auto op = find_operator(node_->target());
    if (!op) return;
    try {
      const ValueOf none = [](const Node&) -> const c10::IValue& { throw std::logic_error("constants have no nodes"); };
      for (const BoundArgument& bound : bind_arguments(*node_, op->schema())) {
        if (bound.given == nullptr || !is_constant(*bound.given)) continue;
        if (bound.formal->type()->kind() == c10::TypeKind::ClassType) continue;  // a group, which need not exist here
        to_ivalue(*bound.given, *bound.formal->type(), bound.formal->N(), none, *node_, bound.field);
      }
    } catch (const GraphError& error) {
      const std::string text = error.what();
      add(error.field(), text.substr(text.find(error.field() + ": ") + error.field().size() + 2));
    }
  }

  static bool is_constant(const Argument& argument) {
    bool constant = true;
    for_each_leaf(argument,
                  [&constant](const Argument& leaf) { constant &= !leaf.is<Node*>() && !leaf.is<SymExpr>(); });
    return constant;
  }

  const GraphModule& module_;
  std::string prefix_;
  Seen& seen_;
  std::vector<Problem>& problems_;
  std::unordered_map<const Node*, std::unordered_set<const Node*>> wide_;  // the inputs of nodes that have many
  const Node* node_ = nullptr;
  std::unordered_set<std::string> names_;
  std::unordered_set<const Node*> before_;
  std::size_t edges_ = 0;
  std::size_t uses_ = 0;
};

}  // namespace

std::string to_string(const Problem& problem) {
  return GraphError(problem.node, problem.field, problem.message).what();
}

std::vector<Problem> verify(const GraphModule& module) {
  try {
    check_nesting(module);
  } catch (const GraphError&) {
    return {{"", "submodule", "nested deeper than " + std::to_string(kMaxNesting) + "; nothing else was checked"}};
  }
  std::vector<Problem> problems;
  Verifier::Seen seen = {&module};
  Verifier(module, "", seen, problems).run();
  return problems;
}

void check_well_formed(const GraphModule& module) {
  const std::vector<Problem> problems = verify(module);
  if (problems.empty()) return;
  std::string message = problems[0].message;
  for (std::size_t i = 1; i < problems.size(); ++i) message += "\n" + to_string(problems[i]);
  throw GraphError(problems[0].node, problems[0].field, message);
}

}  // namespace rehearse::graph

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Writes the nodes of a capture: first the placeholders, in order of creation, then the calls.
class GraphBuilder {
 public:
  const std::shared_ptr<graph::GraphModule>& module() const noexcept { return module_; }
  graph::Graph& graph() noexcept { return module_->graph(); }

  // Sets the place in the code for the nodes that follow, and forgets owner and communication.
  void set_origin(exec::CallSite site);
  // Sets the module that owns the parameters in use, such as "net.0"; may be empty. Holds until set_origin().
  void set_owner(const std::string& module_path);
  const exec::CallSite& site() const noexcept { return site_; }
  // The nodes that follow communicate: see Origin::asked_from and Origin::label. Holds until set_origin().
  void set_communication(std::vector<void*> asked_from, std::optional<std::string> label);

  graph::Node& placeholder(const std::string& name);
  graph::Node& call(const std::string& target, graph::List args, graph::Dict kwargs = {});
  graph::Node& method(const std::string& name, graph::List args);
  // Adds a node for item `index` of the value of `producer`, right after `producer` and the nodes of other items.
  graph::Node& item(graph::Node& producer, std::int64_t index);

 private:
  std::shared_ptr<const graph::Origin> origin();
  graph::Node& added(graph::Node& call);

  std::shared_ptr<graph::GraphModule> module_ = std::make_shared<graph::GraphModule>();
  graph::Node* first_call_ = nullptr;
  exec::CallSite site_;
  std::string owner_;
  std::vector<void*> asked_from_;
  std::optional<std::string> label_;
  std::shared_ptr<const graph::Origin> origin_;  // made of the four members above; null: not made yet
};

// `encoder,encoder,;encoder.0,encoder.0,`: the stack of modules for a path of names, in the format of graph::Origin.
std::string module_stack(const std::string& path);

// The path of the module that owns a parameter: "net.0" for "net.0.weight", empty for "weight".
std::string owner_of(const std::string& parameter);

}  // namespace rehearse::capture

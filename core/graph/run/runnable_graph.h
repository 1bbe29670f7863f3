// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

#include "graph/run/step.h"

namespace rehearse::graph {

// A graph with everything looked up: what an Interpreter runs. Keeps its module.
class RunnableGraph {
 public:
  // `bodies`: where the programs of called modules are found; used only here. Throws GraphError as Interpreter does.
  RunnableGraph(std::shared_ptr<const GraphModule> module, Bodies& bodies);

  c10::IValue run(std::vector<c10::IValue> inputs) const;

  void set_observer(std::function<void(const Node&, const c10::IValue&)> observer) { observer_ = std::move(observer); }

 private:
  struct Entry {
    const Node* node;
    std::unique_ptr<Step> step;          // null: a placeholder or the output
    std::vector<std::size_t> last_uses;  // slots that nobody reads after this node
  };

  void check_place(const Node& node) const;
  void find_last_uses();

  std::shared_ptr<const GraphModule> module_;
  std::unordered_map<const Node*, std::size_t> slots_;
  std::vector<Entry> entries_;
  const Node* output_ = nullptr;
  std::size_t inputs_ = 0;
  std::function<void(const Node&, const c10::IValue&)> observer_;
};

// What a graph returned, each item by itself: the items of a tuple, or the one value.
std::vector<c10::IValue> items_of(c10::IValue value);

}  // namespace rehearse::graph

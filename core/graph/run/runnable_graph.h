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

// A graph with everything looked up, ready for an Interpreter. Keeps its module alive.
class RunnableGraph {
 public:
  // `bodies`: provides the graphs of called modules; used only in the constructor. Throws GraphError like Interpreter.
  RunnableGraph(std::shared_ptr<const GraphModule> module, Bodies& bodies);

  c10::IValue run(std::vector<c10::IValue> inputs) const;

  void set_observer(std::function<void(const Node&, const c10::IValue&)> observer) { observer_ = std::move(observer); }

 private:
  struct Entry {
    const Node* node;
    std::unique_ptr<Step> step;          // null: a placeholder or the output
    std::vector<std::size_t> last_uses;  // slots that no later node reads
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

// The items of a graph's result: those of a tuple, or the single value.
std::vector<c10::IValue> items_of(c10::IValue value);

}  // namespace rehearse::graph

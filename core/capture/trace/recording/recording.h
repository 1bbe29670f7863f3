// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/capture/forward_capture.h>
#include <rehearse_internal/capture/fake_mode.h>

#include "capture/graph/call_arguments.h"
#include "capture/graph/expression_nodes.h"
#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/inputs.h"
#include "capture/trace/recording/mode_nodes.h"
#include "capture/trace/recording/segment_cutter.h"
#include "capture/trace/recording/storage_sizes.h"
#include "capture/trace/recording/traced_values.h"
#include "capture/trace/recording/view_families.h"

namespace rehearse::capture {

// The recording of a capture so far: its parts, and the node, fake or number that stands for each value that the code
// uses.
class Recording {
 public:
  Recording(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const std::shared_ptr<shapes::ShapeEnv> shapes;
  FakeMode mode;
  GraphBuilder graph;
  ExpressionNodes symbols;
  ViewFamilies families;
  Inputs inputs;
  Values values;
  StorageSizes storages;
  ModeNodes modes;
  SegmentCutter segments;
  std::vector<Remark> remarks;

  // The hook whose code is being captured.
  struct Hook {
    explicit Hook(at::Tensor of_backward) : gradient(std::move(of_backward)) {}
    at::Tensor gradient;
    std::exception_ptr refusal = nullptr;  // the first refusal in its code
  };
  std::optional<Hook> hook;

  // The fake that stands for a real tensor. Returns a fake unchanged.
  at::Tensor fake_of(const at::Tensor& tensor);
  // Replaces real tensors by their fakes, in lists too.
  c10::IValue with_fakes(const c10::IValue& value);
  graph::Node& node_of(const at::Tensor& tensor);

  const ArgumentContext& context() const noexcept { return context_; }
  CallArguments arguments_of(const c10::FunctionSchema& schema, const torch::jit::Stack& values) const {
    return to_arguments(schema, values, context_);
  }

  // Notes a constant that the code made. Each call of the graph gets its own copy, because code may change it in place.
  void note_constant(const at::Tensor& made) { constants_.push_back(made); }
  // The nodes that follow belong to the module of the first parameter or buffer among the arguments.
  void note_owner(const torch::jit::Stack& arguments);

  // Notes that size `dim` of the item at `path` of the value of `node` defines the symbol. Does nothing if the symbol
  // is defined already.
  void note_size(const std::string& symbol, graph::Node& node, const std::vector<std::int64_t>& path, std::int64_t dim);
  // Adds a node that reads each data-dependent size, unless the graph has one. Call it before a segment ends, so that
  // later segments can use these sizes.
  void bind_sizes();

  // The number for the next node that brings history to a tensor that it does not return (see graph::Metadata).
  std::size_t next_history() noexcept { return ++histories_; }
  // Later nodes belong to the next segment.
  void begin_next_segment() { segments.begin_next(histories_); }

  // Adds nodes that check the facts about run-time sizes that the code has stated since the last call
  // (TORCH_SYM_CHECK).
  void add_asserts();
  // Skips the facts stated since the last add_asserts(): other graphs check these facts.
  void skip_asserts();

 private:
  struct SymbolSource {  // a size of a value of the graph
    graph::Node* node;
    std::vector<std::int64_t> path;
    std::int64_t dim;
  };

  graph::Node& node_of_symbol(const std::string& symbol);
  void copy_constant(const at::Tensor& fake);

  const ArgumentContext context_;
  std::map<std::string, SymbolSource> sizes_;  // unbacked symbols that are a size of a value
  std::vector<at::Tensor> constants_;
  std::size_t asserts_added_ = 0;  // number of the ShapeEnv's asserts that are done
  std::size_t histories_ = 0;
};

}  // namespace rehearse::capture

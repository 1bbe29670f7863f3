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

// What a capture has recorded so far. Its parts, and which node, fake or number stands for what the code uses.
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
    std::exception_ptr refusal = nullptr;  // the first one that its code has met
  };
  std::optional<Hook> hook;

  // The fake that stands for a real tensor; a fake itself.
  at::Tensor fake_of(const at::Tensor& tensor);
  // Real tensors replaced by their fakes, in lists as well.
  c10::IValue with_fakes(const c10::IValue& value);
  graph::Node& node_of(const at::Tensor& tensor);

  // What turns values into arguments of a node here.
  const ArgumentContext& context() const noexcept { return context_; }
  CallArguments arguments_of(const c10::FunctionSchema& schema, const torch::jit::Stack& values) const {
    return to_arguments(schema, values, context_);
  }

  // A constant that the code has made. Each call has its own, which may be changed in place.
  void note_constant(const at::Tensor& made) { constants_.push_back(made); }
  // From now on nodes belong to the module of the first parameter or buffer among the arguments.
  void note_owner(const torch::jit::Stack& arguments);

  // Size `dim` of a value of `node` brings the symbol into being, if nothing has done so.
  void note_size(const std::string& symbol, graph::Node& node, const std::vector<std::int64_t>& path, std::int64_t dim);
  // The symbols of sizes that only data tells become integers of the segment that knows them.
  void bind_sizes();

  // The number of a node that brings history to a tensor it does not give, see graph::Metadata.
  std::size_t next_history() noexcept { return ++histories_; }
  // From now on what is recorded belongs to the next segment.
  void begin_next_segment() { segments.begin_next(histories_); }

  // Nodes for facts that the code has stated since the last call about sizes known only at run time (TORCH_SYM_CHECK):
  // the graph checks them where they were stated.
  void add_asserts();
  // What has been stated since is in other graphs.
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
  std::map<std::string, SymbolSource> sizes_;  // unbacked symbols that came as a size
  std::vector<at::Tensor> constants_;
  std::size_t asserts_added_ = 0;  // of the ShapeEnv's
  std::size_t histories_ = 0;
};

}  // namespace rehearse::capture

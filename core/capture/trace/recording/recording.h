// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
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
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>
#include <c10/core/SymInt.h>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/capture/forward_capture.h>
#include <rehearse/exec/call_site.h>
#include <rehearse_internal/capture/fake_mode.h>

#include "capture/graph/call_arguments.h"
#include "capture/graph/expression_nodes.h"
#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/inputs.h"
#include "capture/trace/recording/segment_cutter.h"
#include "capture/trace/recording/traced_values.h"
#include "capture/trace/recording/view_families.h"

namespace rehearse::capture {

// Records changes of grad mode and autocast as nodes. Code changes these modes with guards; sync() notices the change
// before the next operator.
class ModeNodes {
 public:
  explicit ModeNodes(GraphBuilder& graph) : graph_(graph) {}

  // While it lives, sync() assumes that grad mode is already off in the graph, and adds no node that switches it off.
  // The nodes that are recorded meanwhile will run in a backward, where grad mode is off.
  class WithoutGradMode {
   public:
    explicit WithoutGradMode(ModeNodes& modes) : modes_(modes), before_(std::exchange(modes.grad_enabled_, false)) {}
    WithoutGradMode(const WithoutGradMode&) = delete;
    WithoutGradMode& operator=(const WithoutGradMode&) = delete;
    ~WithoutGradMode() { modes_.grad_enabled_ = before_; }

   private:
    ModeNodes& modes_;
    const bool before_;
  };

  // Takes the current modes as the caller's, which need no node.
  void begin();
  // Adds nodes that switch the graph's modes to the current ones.
  void sync();
  // Adds nodes that switch the graph's modes back to the caller's. The next sync() sets the code's modes again.
  void leave();
  // True if the current autocast differs from the caller's.
  bool has_own_autocast() const;

 private:
  struct Autocast {
    bool enabled = false;
    c10::ScalarType dtype = c10::ScalarType::Undefined;
    bool operator==(const Autocast&) const = default;
  };
  struct Region {
    graph::Node* enter;
    Autocast state;
  };
  struct Device {
    c10::DeviceType type;
    Autocast outside = {};
    std::vector<Region> regions = {};  // entered, innermost last
  };

  static Autocast current(c10::DeviceType type);
  void sync(Device& device);
  void exit_until(Device& device, std::size_t kept);

  GraphBuilder& graph_;
  bool grad_enabled_ = true;  // in the graph
  bool outer_grad_enabled_ = true;
  std::array<Device, 2> devices_ = {Device{c10::DeviceType::CPU}, Device{c10::DeviceType::CUDA}};
};

class StorageSizes {
 public:
  explicit StorageSizes(Inputs& inputs) : inputs_(inputs) {}

  // The bytes of the fake's storage. If a tensor from outside of the graph has this storage, notes the answer, so that
  // a guard can check it. The answer is then an expression over the sizes of that tensor if the storage ends with the
  // tensor's last element, else a plain number. Throws NotCapturable for a sharded parameter. `where`: the place for
  // that error.
  c10::SymInt bytes_of(const at::Tensor& fake, const exec::CallSite& where);
  // Call it when captured code has resized the storage: from now on, bytes_of() returns the size of the fake's storage.
  void note_resized(const at::Tensor& fake);

  const std::vector<StorageFact>& asked() const noexcept { return asked_; }

 private:
  bool was_resized(const at::Tensor& fake) const;
  Inputs::Source* source_with_storage(const at::Tensor& fake);

  Inputs& inputs_;
  std::vector<c10::Storage> resized_;
  std::vector<StorageFact> asked_;
};

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

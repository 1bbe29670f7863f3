// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/compile/user_code.h>

#include "compile/captures/capture_call.h"
#include "compile/guards/tensor_guard.h"

namespace rehearse::compiler {

// What captured code used of its call: from that come the inputs of the graph and the guards of the entry.
class CapturedUse {
 public:
  // In front of the code, which may change what its arguments are. `shape`: of each leaf.
  CapturedUse(const CallView& call, const std::vector<LeafShape>& shape);

  // Behind the code, while the stand-ins live: code may look at sizes without a trace in the graph.
  void look_at(const StandIns& stand_ins);
  // Questions about storages that exist before the graph. In front of bind_inputs().
  void note_storages(std::vector<capture::StorageFact> storages) { storages_ = std::move(storages); }

  // Binds the inputs of the captured graph, and notes which leaves its nodes use.
  void bind_inputs(const capture::CapturedGraph& captured, const CapturedLeaves& leaves, Capture& capture);
  // `places` has one entry for each source of `shapes`.
  void add_guards(std::vector<SymbolPlace> places, const std::shared_ptr<shapes::ShapeEnv>& shapes, WatchList watches,
                  Capture& capture) const;

 private:
  bool is_used(std::uint32_t leaf) const;
  void add_leaf(std::uint32_t leaf, Capture& capture) const;
  void add_captured(const capture::GraphInput& input, graph::Node& placeholder, Capture& capture) const;
  void guard_storage(const at::Tensor& tensor, TensorGuard& guard) const;

  const CallView& call_;
  std::vector<std::optional<TensorGuard>> tensors_;  // of each leaf that is one
  std::vector<bool> used_, offset_read_;             // of each leaf
  std::vector<capture::StorageFact> storages_;
  std::vector<std::shared_ptr<const graph::Origin>> origins_;  // of the first use of each leaf
};

}  // namespace rehearse::compiler

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/capture/segments.h>
#include <rehearse/compile/user_code.h>
#include <rehearse/compile/watch.h>

#include "compile/captures/capture_call.h"
#include "compile/guards/tensor_guard.h"

namespace rehearse::compiler {

// An eager region in the state in which it ran.
class WatchedRegion final : public Watched {
 public:
  explicit WatchedRegion(capture::RegionState region) : region_(std::move(region)) {}

  bool holds() const override { return region_.holds(); }
  GuardFailure failure() const override {
    return {region_.region->title(), "modes and attributes as at the capture", "others", ""};
  }

 private:
  const capture::RegionState region_;
};

// Collects what captured code used of its call. The inputs of the graph and the guards of the entry follow from that.
class CapturedUse {
 public:
  // Construct it before the code runs, because the code may change its arguments. `shape`: one for each leaf.
  CapturedUse(const CallView& call, const std::vector<LeafShape>& shape);

  // Notes which layouts and offsets of the stand-ins the code has read, because a read may leave no node in the graph.
  // Call it after the code has run, while the stand-ins live.
  void look_at(const StandIns& stand_ins);
  // Takes the storage sizes for which the code has asked. The storages belong to tensors that exist before the code
  // runs. Call it before bind_inputs().
  void note_storages(std::vector<capture::StorageFact> storages) { storages_ = std::move(storages); }

  // Binds the inputs of the captured graph, and notes which leaves its nodes use.
  void bind_inputs(const capture::CapturedGraph& captured, const CapturedLeaves& leaves, Capture& capture);
  // `positions` has one entry for each source of `shapes`.
  void add_guards(std::vector<SymbolPosition> positions, const std::shared_ptr<shapes::ShapeEnv>& shapes,
                  WatchList watches, Capture& capture) const;

 private:
  bool is_used(std::uint32_t leaf) const;
  void add_leaf(std::uint32_t leaf, Capture& capture) const;
  void add_captured(const capture::GraphInput& input, graph::Node& placeholder, Capture& capture) const;
  void guard_identity(const at::Tensor& found, Capture& capture) const;
  void guard_storage(const at::Tensor& tensor, TensorGuard& guard) const;

  const CallView& call_;
  std::vector<std::optional<TensorGuard>> tensors_;  // for each leaf that is a tensor
  std::vector<bool> used_, offset_read_;             // for each leaf
  std::vector<capture::StorageFact> storages_;
  std::vector<std::shared_ptr<const graph::Origin>> origins_;  // for the first use of each leaf
};

}  // namespace rehearse::compiler

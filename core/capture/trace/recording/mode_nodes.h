// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "capture/trace/recording/graph_builder.h"

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

}  // namespace rehearse::capture

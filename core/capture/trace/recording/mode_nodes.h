// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "capture/trace/recording/graph_builder.h"

namespace rehearse::capture {

// Grad mode and autocast as nodes: what code set with guards is seen when the next operator comes.
class ModeNodes {
 public:
  explicit ModeNodes(GraphBuilder& graph) : graph_(graph) {}

  // While it lives, grad mode off is what the graph has, without a node: a backward runs what is recorded.
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

  // The modes that hold now are the caller's, and need no node.
  void begin();
  // Nodes that bring the graph's modes to those that hold now.
  void sync();
  // Nodes that bring the graph's modes back to the caller's. What the code has set comes again with the next sync().
  void leave();
  // Does another autocast hold now than for the caller?
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

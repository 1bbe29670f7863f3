// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace rehearse::parallel {

// What operators read in the calling fiber and a second run of the same code must find again: the states of the default
// generators of the CPU and of the devices on which `inputs` lie, and autocast.
class RunState {
 public:
  static RunState current(const std::vector<at::Tensor>& inputs);

  // The present state of the same devices.
  RunState current_like_this() const;

  void restore() const;

 private:
  struct Autocast {
    bool enabled = false;
    c10::ScalarType dtype = c10::ScalarType::Undefined;
  };

  void take();

  std::vector<std::pair<c10::Device, at::Tensor>> generators_;  // the states of their default generators
  std::array<Autocast, 2> autocast_;                            // of the CPU, of CUDA
  bool autocast_cache_ = true;
};

// Makes `state` the calling fiber's while it lives, with autocast's cache off: what the cache holds differs between two
// runs.
class RunStateScope {
 public:
  explicit RunStateScope(const RunState& state);
  RunStateScope(const RunStateScope&) = delete;
  RunStateScope& operator=(const RunStateScope&) = delete;
  ~RunStateScope() { before_.restore(); }

 private:
  const RunState before_;
};

// Autocast's cache is off while it lives.
class NoAutocastCache {
 public:
  NoAutocastCache();
  NoAutocastCache(const NoAutocastCache&) = delete;
  NoAutocastCache& operator=(const NoAutocastCache&) = delete;
  ~NoAutocastCache();

 private:
  const bool before_;
};

}  // namespace rehearse::parallel

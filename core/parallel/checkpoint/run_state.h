// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace rehearse::parallel {

// The state of the calling fiber that a second run of the same code needs: the default generators of the CPU and of the
// devices of `inputs`, and autocast.
class RunState {
 public:
  static RunState current(const std::vector<at::Tensor>& inputs);

  // Returns the current state, with the generators of the same devices as in this state.
  RunState current_like_this() const;

  void restore() const;

 private:
  struct Autocast {
    bool enabled = false;
    c10::ScalarType dtype = c10::ScalarType::Undefined;
  };

  void take();

  std::vector<std::pair<c10::Device, at::Tensor>> generators_;  // the states of their default generators
  std::array<Autocast, 2> autocast_;                            // for the CPU, for CUDA
  bool autocast_cache_ = true;
};

// While it lives, the calling fiber has the given state, and autocast's cache is off, because the two runs would find
// different contents in the cache.
class RunStateScope {
 public:
  explicit RunStateScope(const RunState& state);
  RunStateScope(const RunStateScope&) = delete;
  RunStateScope& operator=(const RunStateScope&) = delete;
  ~RunStateScope() { before_.restore(); }

 private:
  const RunState before_;
};

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

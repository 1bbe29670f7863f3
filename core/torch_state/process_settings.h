// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::torch_state {

// The settings of LibTorch that a TorchRankState changes for the whole process while it lives. Only one object may
// exist: the constructor of a second one throws std::logic_error.
class ProcessSettings {
 public:
  explicit ProcessSettings(bool single_threaded_ops);
  ProcessSettings(const ProcessSettings&) = delete;
  ProcessSettings& operator=(const ProcessSettings&) = delete;
  ~ProcessSettings();

 private:
  int threads_before_ = 0;  // 0: not changed
};

}  // namespace rehearse::torch_state

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::torch_state {

// The settings that a TorchRankState changes in LibTorch for the whole process during its life. Only one may exist: a
// second one throws std::logic_error.
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

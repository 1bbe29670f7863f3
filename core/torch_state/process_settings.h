// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::torch_state {

// What a TorchRankState changes in LibTorch for the whole process, for as long as it lives. There is one at a time:
// a second one throws std::logic_error.
class ProcessSettings {
 public:
  explicit ProcessSettings(bool single_threaded_ops);
  ProcessSettings(const ProcessSettings&) = delete;
  ProcessSettings& operator=(const ProcessSettings&) = delete;
  ~ProcessSettings();

 private:
  int threads_before_ = 0;  // 0: left as they are
};

}  // namespace rehearse::torch_state

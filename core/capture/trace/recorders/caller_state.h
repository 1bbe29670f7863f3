// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <c10/core/DispatchKeySet.h>
#include <c10/core/ScalarType.h>

#include <rehearse/exec/call_site.h>

#include "capture/trace/caller/call_modes.h"

namespace rehearse::capture {

// The state of the code around a capture, saved when the capture begins. Checks that captured code does not change the
// parts that it must not change.
class CallerState {
 public:
  // Call it once, before anything else. `outside`: the return address in the code around the capture, from
  // outer_address().
  void begin(const void* outside);

  // Throws NotCapturable if the code runs a backward, or if inference mode or the default dtype has changed. `site`:
  // the line that is being recorded.
  void check(const exec::CallSite& site) const;
  // Throws NotCapturable if the code has hidden autograd from operators, or revealed it, by a guard of dispatch keys.
  void check_autograd_keys(const exec::CallSite& site) const;
  // Throws NotCapturable if a mode of the whole process has changed: the default dtype, deterministic algorithms or a
  // back end of attention. No node switches these modes.
  void check_process_modes(const exec::CallSite& site) const;
  bool has_process_modes() const;

  // True if captured code has called a function that LibTorch exports, and the function has not returned (see
  // is_called_by_libtorch()). What the code around the capture has called does not count.
  bool has_called(std::initializer_list<std::string_view> prefixes) const;
  // True if captured code has called torch::autograd::grad() or backward(), and the call has not returned.
  bool is_in_gradients() const;
  // True in the code of a hook that such a call runs.
  bool runs_backward() const;

  const CallModes& modes() const;
  const void* outside() const noexcept { return outside_; }
  // The label for the rank's communication; empty if none is set.
  const std::string& label() const noexcept { return label_; }

 private:
  std::optional<CallModes> modes_;
  const void* outside_ = nullptr;
  std::string label_;
  int backward_ = -1;  // number of the backward in which a hook calls the captured function; -1: none
  struct ProcessModes {
    c10::ScalarType default_dtype = c10::ScalarType::Undefined;
    std::array<bool, 6> algorithms = {};  // deterministic, only warns; flash, efficient, math, cuDNN attention
    static ProcessModes current();
    bool operator==(const ProcessModes&) const = default;
  };

  ProcessModes process_modes_;
  bool inference_mode_ = false;
  c10::DispatchKeySet autograd_keys_;  // see autograd_keys()
};

}  // namespace rehearse::capture

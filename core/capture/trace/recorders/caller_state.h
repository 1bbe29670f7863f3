// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

#include <rehearse/exec/call_site.h>

#include "capture/trace/caller/call_modes.h"

namespace rehearse::capture {

// The state of the code around a capture, saved when the capture begins. Checks that captured code does not change the
// parts that it must not change.
class CallerState {
 public:
  // Call it once, before anything else.
  void begin();

  // Throws NotCapturable if a backward is running, or if inference mode or the default dtype has changed. `site`: the
  // line that is being recorded.
  void check(const exec::CallSite& site) const;
  void check_default_dtype(const exec::CallSite& site) const;
  bool has_default_dtype() const;

  const CallModes& modes() const;
  // The label for the rank's communication; empty if none is set.
  const std::string& label() const noexcept { return label_; }

 private:
  std::optional<CallModes> modes_;
  std::string label_;
  c10::ScalarType default_dtype_ = c10::ScalarType::Undefined;
  bool inference_mode_ = false;
};

}  // namespace rehearse::capture

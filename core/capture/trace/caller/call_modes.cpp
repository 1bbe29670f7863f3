// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/caller/call_modes.h"

#include <ATen/autocast_mode.h>

namespace rehearse::capture {
namespace {

// ThreadLocalState saves whether autocast is on, but not its dtype.
constexpr std::array kAutocastDevices = {at::kCPU, at::kCUDA};

std::array<c10::ScalarType, 2> autocast_dtypes() {
  return {at::autocast::get_autocast_dtype(kAutocastDevices[0]), at::autocast::get_autocast_dtype(kAutocastDevices[1])};
}

void set_autocast_dtypes(const std::array<c10::ScalarType, 2>& dtypes) {
  for (std::size_t i = 0; i < dtypes.size(); ++i) at::autocast::set_autocast_dtype(kAutocastDevices[i], dtypes[i]);
}

}  // namespace

CallModes::CallModes() : autocast_dtypes_(autocast_dtypes()) {}

CallModes::Scope::Scope(const CallModes& modes) : autocast_dtypes_(autocast_dtypes()), guard_(modes.state_) {
  set_autocast_dtypes(modes.autocast_dtypes_);
}

CallModes::Scope::~Scope() { set_autocast_dtypes(autocast_dtypes_); }

}  // namespace rehearse::capture

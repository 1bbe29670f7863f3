// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <ATen/autocast_mode.h>

namespace rehearse::graph {

// Sets autocast like torch.autocast() and restores it at the end of the scope.
class AutocastScope {
 public:
  AutocastScope(c10::DeviceType device, bool enabled, std::optional<c10::ScalarType> dtype, std::optional<bool> cache)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)),
        cache_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, dtype.value_or(dtype_));
    at::autocast::set_autocast_cache_enabled(cache.value_or(cache_));
    at::autocast::increment_nesting();
  }
  ~AutocastScope() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
    at::autocast::set_autocast_cache_enabled(cache_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  bool enabled_;
  c10::ScalarType dtype_;
  bool cache_;
};

}  // namespace rehearse::graph

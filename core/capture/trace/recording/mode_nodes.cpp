// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/mode_nodes.h"

#include <algorithm>
#include <string>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "graph/ir/targets.h"
#include "graph/text/enum_names.h"

namespace rehearse::capture {

void ModeNodes::begin() {
  grad_enabled_ = outer_grad_enabled_ = at::GradMode::is_enabled();
  for (Device& device : devices_) device.outside = current(device.type);
}

void ModeNodes::sync() {
  if (grad_enabled_ != at::GradMode::is_enabled()) {
    grad_enabled_ = !grad_enabled_;
    graph_.call(std::string(graph::kSetGradEnabled), {grad_enabled_});
  }
  for (Device& device : devices_) sync(device);
}

void ModeNodes::leave() {
  for (Device& device : devices_) exit_until(device, 0);
  if (grad_enabled_ == outer_grad_enabled_) return;
  grad_enabled_ = outer_grad_enabled_;
  graph_.call(std::string(graph::kSetGradEnabled), {grad_enabled_});
}

bool ModeNodes::has_own_autocast() const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const Device& device) { return current(device.type) != device.outside; });
}

ModeNodes::Autocast ModeNodes::current(c10::DeviceType type) {
  const bool enabled = at::autocast::is_autocast_enabled(type);
  // The dtype has no meaning while autocast is off.
  return {enabled, enabled ? at::autocast::get_autocast_dtype(type) : c10::ScalarType::Undefined};
}

void ModeNodes::sync(Device& device) {
  const Autocast now = current(device.type);
  auto& regions = device.regions;
  if (now == (regions.empty() ? device.outside : regions.back().state)) return;
  // If the new state is that of an outer region or of the caller, leaves the inner regions; else enters a new region.
  const auto outer =
      std::find_if(regions.rbegin(), regions.rend(), [&](const Region& region) { return region.state == now; });
  if (outer == regions.rend() && now != device.outside) {
    graph::Node& enter =
        graph_.call(std::string(graph::kEnterAutocast), {graph::name_of(c10::Device(device.type)),
                                                         now.enabled ? graph::Argument(now.dtype) : graph::Argument(),
                                                         now.enabled, at::autocast::is_autocast_cache_enabled()});
    regions.push_back({&enter, now});
    return;
  }
  exit_until(device, static_cast<std::size_t>(regions.rend() - outer));
}

void ModeNodes::exit_until(Device& device, std::size_t kept) {
  while (device.regions.size() > kept) {
    graph_.call(std::string(graph::kExitAutocast), {*device.regions.back().enter});
    device.regions.pop_back();
  }
}

}  // namespace rehearse::capture

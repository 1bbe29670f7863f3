// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <c10/core/Stream.h>
#include <c10/util/intrusive_ptr.h>

namespace rehearse::comm {

// The end of one rank's operation on a device, made by Fabric::prepare() in the rank's context. Used in the fiber of
// that rank only. Nothing here blocks or throws.
class DeviceEnd : public c10::intrusive_ptr_target {
 public:
  // Has the device carried it out?
  virtual bool done() noexcept = 0;

  // What the rank launches from here on, on its current stream, comes after it. Once it has been launched.
  virtual void order() noexcept = 0;

  // On which it runs; futures are marked under it.
  virtual c10::Stream stream() const noexcept = 0;

  // How long it took, by the device's clock; empty: it is not done, or was not timed.
  virtual std::optional<float> milliseconds() noexcept = 0;
};

}  // namespace rehearse::comm

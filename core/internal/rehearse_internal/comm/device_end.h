// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <c10/core/Stream.h>
#include <c10/util/intrusive_ptr.h>

namespace rehearse::comm {

// The end of one rank's operation on a device. Fabric::prepare() makes the object in the rank's context. For use in
// that rank's fiber only. Nothing here blocks or throws.
class DeviceEnd : public c10::intrusive_ptr_target {
 public:
  // Whether the device has carried out the operation.
  virtual bool done() noexcept = 0;

  // Makes the rank's current stream wait for the operation: what the rank launches from now on runs after it. Call it
  // after the operation has been launched.
  virtual void order() noexcept = 0;

  // The stream of the operation. Futures are marked under it.
  virtual c10::Stream stream() const noexcept = 0;

  // The duration by the device's clock. nullopt if the operation is not done, or was not timed.
  virtual std::optional<float> milliseconds() noexcept = 0;
};

}  // namespace rehearse::comm

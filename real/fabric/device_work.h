// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// What ranks have given to devices.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;

  // Launches what is ready, and tells of what is done or has failed. Returns whether there was anything.
  virtual bool poll() noexcept = 0;

  // Is anything ready, or under way?
  virtual bool pending() const noexcept = 0;
};

}  // namespace rehearse::real

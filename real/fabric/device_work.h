// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// The work that ranks have given to devices.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;

  // Launches what is ready, and reports what has ended or failed. Returns true if it launched or reported anything.
  virtual bool poll() noexcept = 0;

  // True if anything is ready or under way.
  virtual bool pending() const noexcept = 0;
};

}  // namespace rehearse::real

// SPDX-License-Identifier: BSD-3-Clause
// Declares the classes of gloo/transport that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp names. Device has its
// first virtual functions, in gloo's order. libtorch_cpu has the rest.
#pragma once

#include <string>

namespace gloo::transport {

class Device {
 public:
  virtual ~Device() = 0;
  virtual std::string str() const = 0;  // "tcp, pci=..., iface=eth0, speed=..., addr=[...]"
};

class UnboundBuffer;

}  // namespace gloo::transport

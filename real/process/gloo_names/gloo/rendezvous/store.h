// SPDX-License-Identifier: BSD-3-Clause
// A class that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp derives from. Nobody here makes an object of it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <gloo/transport/device.h>

namespace gloo::rendezvous {

class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace gloo::rendezvous

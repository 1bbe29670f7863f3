// SPDX-License-Identifier: BSD-3-Clause
// What torch/csrc/distributed/c10d/ProcessGroupGloo.hpp overrides in a class that nobody here makes.
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

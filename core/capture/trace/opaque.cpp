// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/opaque.h>

#include <map>
#include <mutex>
#include <stdexcept>

#include <rehearse_internal/operators/own_operator.h>

namespace rehearse::capture::detail {
namespace {

// All bodies by name. One table for the process, because bodies are code and the same for all ranks.
class Bodies {
 public:
  void add(const std::string& name, OpaqueBody body) {
    const std::lock_guard lock(mutex_);
    bodies_.emplace(name, body);
  }
  OpaqueBody at(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = bodies_.find(name);
    if (found == bodies_.end())
      throw std::out_of_range("rehearse::opaque: this program has not called '" + name + "' so far");
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, OpaqueBody> bodies_;
};

Bodies& bodies() {
  static Bodies all;
  return all;
}

std::vector<at::Tensor> opaque_kernel(const std::string& name, const std::vector<at::Tensor>& tensors) {
  return bodies().at(name)(tensors);
}

}  // namespace

std::vector<at::Tensor> call_opaque(const std::string& name, OpaqueBody body, std::vector<at::Tensor> tensors) {
  bodies().add(name, body);
  static const auto op = operators::own_operator("opaque", "(str name, Tensor[] tensors) -> Tensor[]", &opaque_kernel,
                                                 operators::Derivative::by_its_calls);
  return op.call(name, tensors);
}

}  // namespace rehearse::capture::detail

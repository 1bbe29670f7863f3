// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

// A tensor's version counter, with which autograd notices that a tensor saved for backward was changed in place. Code
// that knows the change to be harmless may set the counter back. The backward then uses the contents that the tensor
// has when the backward runs.
//
//   {
//     const at::NoGradGuard no_grad;
//     const rehearse::PreserveVersion keep(whole);
//     whole.copy_(gathered);  // autograd does not notice
//   }
//
// Python's PyTorch has torch._C._autograd._unsafe_set_version_counter() and
// torch.autograd._unsafe_preserve_version_counter(). In a captured function, version() and set_version() become nodes
// of the graph, and the version is a symbol. Thus version() adds no guard, and a call with another version does not
// recompile. Tensor::_version() returns a plain number; a capture refuses it.
//
// Fibers, threads: as operators. Blocking: never.
// Errors: c10::ValueError for an undefined tensor, for an inference tensor (it has no version), and for a negative
// number. In a captured function: capture::NotCapturable, with the line, if the code calls version() after a read or an
// eager region.
namespace rehearse {

c10::SymInt version(const at::Tensor& tensor);
void set_version(const at::Tensor& tensor, const c10::SymInt& version);

// Restores the versions of these tensors at its destruction, so that changes during its life are not counted.
class PreserveVersion {
 public:
  explicit PreserveVersion(const at::Tensor& tensor) : PreserveVersion(std::vector<at::Tensor>{tensor}) {}
  explicit PreserveVersion(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {
    for (const at::Tensor& tensor : tensors_) versions_.push_back(version(tensor));
  }
  PreserveVersion(const PreserveVersion&) = delete;
  PreserveVersion& operator=(const PreserveVersion&) = delete;
  // Throws what set_version() throws, but not during stack unwinding.
  ~PreserveVersion() noexcept(false) {
    const bool is_unwinding = std::uncaught_exceptions() > exceptions_;
    try {
      for (std::size_t i = 0; i < tensors_.size(); ++i) set_version(tensors_[i], versions_[i]);
    } catch (...) {
      if (!is_unwinding) throw;
    }
  }

 private:
  const int exceptions_ = std::uncaught_exceptions();
  const std::vector<at::Tensor> tensors_;
  std::vector<c10::SymInt> versions_;
};

}  // namespace rehearse

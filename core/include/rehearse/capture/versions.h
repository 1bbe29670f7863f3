// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

// The number by which autograd finds out that a tensor was changed in place since it was saved for a backward. Code
// that knows better may set it back: the backward then takes the tensor as it is by then.
//
//   {
//     const at::NoGradGuard no_grad;
//     const rehearse::PreserveVersion keep(whole);
//     whole.copy_(gathered);  // autograd has seen nothing
//   }
//
// PyTorch's Python has torch.autograd._unsafe_set_version_counter() and _unsafe_preserve_version_counter(). In a
// captured function these are nodes of the graph, and a version is a symbol: no guard, and no compilation for each
// number. Tensor::_version() is a plain number, and refused there.
//
// Fibers, threads: as operators. Blocking: never.
// Errors: c10::ValueError for an undefined tensor, for one of inference mode, which has no version, and for a negative
// number. In a captured function capture::NotCapturable, with the line, for a question behind a read or an eager
// region.
namespace rehearse {

c10::SymInt version(const at::Tensor& tensor);
void set_version(const at::Tensor& tensor, const c10::SymInt& version);

// While it lives, changes of these tensors are not counted: it sets their versions back at its end.
class PreserveVersion {
 public:
  explicit PreserveVersion(const at::Tensor& tensor) : PreserveVersion(std::vector<at::Tensor>{tensor}) {}
  explicit PreserveVersion(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {
    for (const at::Tensor& tensor : tensors_) versions_.push_back(version(tensor));
  }
  PreserveVersion(const PreserveVersion&) = delete;
  PreserveVersion& operator=(const PreserveVersion&) = delete;
  // Throws what a captured function throws, but not while an exception is on its way.
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

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

namespace rehearse::capture {

// Groups the fakes that autograd considers views of one tensor in eager mode: a base, its views, and views of these
// views. A write to one of them gives all of them a new history. Sharing memory alone does not make a family: for
// autograd, the result of detach() is no view.
class ViewFamilies {
 public:
  // Merges the families of the two tensors.
  void join(const at::Tensor& view, const at::Tensor& base);

  // The living members of the tensor's family, including the tensor itself, in the order in which they joined.
  std::vector<at::Tensor> family_of(const at::Tensor& tensor) const;

 private:
  // The weak reference keeps new tensors from getting the member's address, which is its key in numbers_.
  using Member = c10::weak_intrusive_ptr<c10::TensorImpl>;

  std::size_t number_of(const at::Tensor& tensor);

  std::unordered_map<const c10::TensorImpl*, std::size_t> numbers_;
  std::vector<std::vector<Member>> families_;  // by number; empty if the family was joined to another one
};

}  // namespace rehearse::capture

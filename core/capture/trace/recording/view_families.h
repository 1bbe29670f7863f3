// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

namespace rehearse::capture {

// Which fakes autograd takes for views of one tensor in eager mode: a base, its views and theirs. When one of them is
// written, the history that comes is that of all. It is autograd's relation, not that of memory: what detach() gives is
// no view of its argument.
class ViewFamilies {
 public:
  // From now on both are of one family.
  void join(const at::Tensor& view, const at::Tensor& base);

  // Those of its family that are alive, itself among them, in order of their joining.
  std::vector<at::Tensor> family_of(const at::Tensor& tensor) const;

 private:
  // Weak: while it is held, no other tensor has this address.
  using Member = c10::weak_intrusive_ptr<c10::TensorImpl>;

  std::size_t number_of(const at::Tensor& tensor);

  std::unordered_map<const c10::TensorImpl*, std::size_t> numbers_;
  std::vector<std::vector<Member>> families_;  // by number; empty where it has been joined to another one
};

}  // namespace rehearse::capture

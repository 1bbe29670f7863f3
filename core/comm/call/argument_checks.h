// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

// Checks a call's arguments on one rank, before they are compared with the arguments of other ranks. Each function
// throws c10::Error unless the arguments are as its comment or its name says. `index`: the position of `tensor` in its
// list, for the text. If c10d's own back ends make the same check, the text after the op's name is, or begins with,
// c10d's text, which users know and search for.
namespace rehearse::comm {

class ArgumentChecks {
 public:
  using Tensors = std::vector<at::Tensor>;

  // `op`: the name that users call, "allreduce".
  ArgumentChecks(const char* op, int size) : op_(op), size_(size) {}

  [[noreturn]] void fail(const std::string& text) const;

  void root(std::int64_t root, std::int64_t root_tensor = 0) const;
  void defined(const at::Tensor& tensor) const;
  void dense(const at::Tensor& tensor) const;

  // The elements fill one block of memory without gaps or overlaps, so that the block can be copied as a whole.
  void filled(const at::Tensor& tensor) const;
  void contiguous(const at::Tensor& tensor) const;
  // The tensors are contiguous in the same memory format, such as channels_last.
  void same_format(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const;
  void same_layout(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const;

  // Returns the only tensor of the list, of any layout.
  const at::Tensor& only(const Tensors& tensors, const char* list = "tensor list") const;

  // Returns the only tensor of the list, which must be dense.
  const at::Tensor& single(const Tensors& tensors, const char* list = "tensor list") const;

  // Returns the only list, which must have one tensor for each rank. `is_output` selects the wording.
  const Tensors& one_for_each_rank(const std::vector<Tensors>& lists, bool is_output) const;

  // Does what one_for_each_rank() does, for an all-gather's outputs. c10d has its own wording for them.
  const Tensors& gathered_by_all(const std::vector<Tensors>& outputs) const;

  void same_type(const at::Tensor& expected, const Tensors& tensors) const;
  void same_type(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const;
  void same_sizes(const at::Tensor& expected, const Tensors& tensors) const;

  // `tensor` has as many elements as `expected`.
  void same_count(const at::Tensor& expected, const at::Tensor& tensor, int index) const;

  // `whole` has as many elements as the tensors `part` of all ranks together, and the same dtype and device type.
  // `size_text`, `type_text`: the texts of the errors.
  void base_pair(const at::Tensor& whole, const at::Tensor& part, const char* size_text, const char* type_text) const;

 private:
  [[noreturn]] void wrong_layout(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const;
  [[noreturn]] void wrong_size(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const;

  const char* const op_;
  const int size_;
};

}  // namespace rehearse::comm

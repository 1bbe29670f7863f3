// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>
#include <c10/util/SmallVector.h>

namespace rehearse::python {

// A tensor with the memory, sizes and strides of `tensor`, on another device. It keeps the memory alive.
at::Tensor labelled(const at::Tensor& tensor, c10::Device device);

// What one call of an operator lends to a kernel of the CPU.
class Loan {
 public:
  explicit Loan(const c10::OperatorHandle& op) : op_(op) {}

  // Puts tensors of the CPU in the place of those on "cuda". Throws c10::Error, as on a GPU, if tensors are on several
  // devices; one of the CPU without dimensions goes with all.
  void lend(c10::IValue& value, const c10::Argument& argument);

  // After the call: what the kernel has resized.
  void give_back();
  // Puts tensors on "cuda" in the place of the kernel's results.
  void take(c10::IValue& result) const;

 private:
  struct Pair {
    at::Tensor tensor, lent;
    const void* data;  // of `lent`, when it was lent
  };

  at::Tensor lend(const at::Tensor& tensor, const c10::Argument& argument);
  at::Tensor lend_sparse(const at::Tensor& tensor);
  at::Tensor take(const at::Tensor& result) const;
  at::Tensor take_sparse(const at::Tensor& result) const;
  void require_one_device(const at::Tensor& tensor, const c10::Argument& argument);
  c10::Device device() const;

  const c10::OperatorHandle& op_;
  c10::DeviceIndex index_ = -1;  // of the tensors on "cuda", or the one that the caller asks for
  c10::SmallVector<Pair, 4> pairs_;
};

}  // namespace rehearse::python

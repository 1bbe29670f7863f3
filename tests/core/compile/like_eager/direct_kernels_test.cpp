// SPDX-License-Identifier: BSD-3-Clause
// Contract: a function that works on tensors without operators, by LibTorch's internal functions, runs as it is if a
// capture cannot follow it.
#include <sstream>

#include <ATen/ATen.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/api/include/torch/serialize.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler::direct_kernels {
namespace {

using rehearse::test::BitEqual;

at::Tensor by_bytes(const at::Tensor& x) { return x * static_cast<double>(x.storage().nbytes()); }

at::Tensor by_iterator(const at::Tensor& x) {
  at::Tensor result;
  auto iterator = at::TensorIteratorConfig().add_owned_output(result).add_const_input(x).build();
  iterator.for_each([](char** data, const std::int64_t* strides, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      *reinterpret_cast<float*>(data[0] + i * strides[0]) = 7 * *reinterpret_cast<float*>(data[1] + i * strides[1]);
    }
  });
  return iterator.output();
}

at::Tensor by_resize(const at::Tensor& x) {
  const at::Tensor result = at::empty({0});
  at::native::resize_output(result, x.sizes());
  return result.zero_() + x;
}

at::Tensor with_a_copy_in_a_stream(const at::Tensor& x) {
  std::ostringstream stream;
  torch::save(x, stream);
  return x * 2;
}

TEST(DirectKernels, RunAsTheyAre) {
  for (const auto function : {&by_bytes, &by_iterator, &by_resize, &with_a_copy_in_a_stream}) {
    for (const std::optional<bool> dynamic : {std::optional<bool>(), std::optional<bool>(true)}) {
      auto compiled = compile(function, {.dynamic = dynamic});
      for (const std::int64_t rows : {2, 3, 4, 3}) {
        const at::Tensor x = at::arange(rows * 3, at::kFloat).view({rows, 3});
        EXPECT_THAT(compiled(x), BitEqual(function(x))) << rows << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::direct_kernels

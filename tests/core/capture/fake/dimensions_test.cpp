// SPDX-License-Identifier: BSD-3-Clause
// Contract: an operator on fakes accepts the dimensions that it accepts on real tensors, and throws for all others. No
// dimension ends the process, not even a wrong one for a tensor without dimensions. This holds also for operators such
// as flip, roll and sort, whose kernels check the dimension only when they compute.
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/fake_tensor.h>

#include "operator_case.h"

namespace rehearse::capture::test {
namespace {

struct DimensionCase {
  const char* name;
  std::vector<at::Tensor> (*apply)(const at::Tensor& x, std::int64_t dim);
};

// An index with as many values as `x` has positions along `dim`, for operators that write along `dim`. If `x` has no
// such dimension, the index has one value.
at::Tensor index_along(const at::Tensor& x, std::int64_t dim) {
  const bool exists = -x.dim() <= dim && dim < x.dim();
  return at::zeros({exists ? x.size(dim) : 1}, at::kLong);
}

const DimensionCase kCases[] = {
    {"unbind", [](const at::Tensor& x, std::int64_t dim) { return x.unbind(dim); }},
    {"split", [](const at::Tensor& x, std::int64_t dim) { return x.split(2, dim); }},
    {"split by 0", [](const at::Tensor& x, std::int64_t dim) { return x.split(0, dim); }},
    {"split_with_sizes", [](const at::Tensor& x, std::int64_t dim) { return x.split_with_sizes({1, 2}, dim); }},
    {"chunk", [](const at::Tensor& x, std::int64_t dim) { return x.chunk(2, dim); }},
    {"tensor_split", [](const at::Tensor& x, std::int64_t dim) { return x.tensor_split(2, dim); }},
    {"select", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.select(dim, 0)}; }},
    {"slice", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.slice(dim, 0, 1)}; }},
    {"narrow", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.narrow(dim, 0, 1)}; }},
    {"unfold", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.unfold(dim, 1, 1)}; }},
    {"diagonal", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.diagonal(0, dim, 0)}; }},
    {"transpose", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.transpose(dim, 0)}; }},
    {"permute", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.permute({dim})}; }},
    {"unsqueeze", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.unsqueeze(dim)}; }},
    {"squeeze", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.squeeze(dim)}; }},
    {"flatten", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.flatten(dim)}; }},
    {"expand", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.expand({2, dim})}; }},
    {"view", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.view({dim, 1})}; }},
    {"cat", [](const at::Tensor& x, std::int64_t dim) { return Tensors{at::cat({x, x}, dim)}; }},
    {"stack", [](const at::Tensor& x, std::int64_t dim) { return Tensors{at::stack({x, x}, dim)}; }},
    {"sum", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.sum({dim}, true)}; }},
    {"softmax", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.add(1).softmax(dim)}; }},
    {"cumsum", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.cumsum(dim)}; }},
    {"topk", [](const at::Tensor& x, std::int64_t dim) { return Tensors{std::get<0>(x.topk(1, dim))}; }},
    {"repeat_interleave", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.repeat_interleave(2, dim)}; }},
    {"glu", [](const at::Tensor& x, std::int64_t dim) { return Tensors{at::glu(x, dim)}; }},
    {"index_select",
     [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.index_select(dim, at::zeros({1}, at::kLong))}; }},
    {"gather",
     [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.gather(dim, at::zeros_like(x, at::kLong))}; }},
    {"flip", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.flip({dim})}; }},
    {"flip of two", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.flip({0, dim})}; }},
    {"roll", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.roll({1}, {dim})}; }},
    {"roll of two", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.roll({1, 1}, {0, dim})}; }},
    {"roll without a shift", [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.roll({}, {dim})}; }},
    {"roll of all", [](const at::Tensor& x, std::int64_t shift) { return Tensors{x.roll({shift})}; }},
    {"roll of an empty tensor",
     [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.narrow(0, 0, 0).roll({1}, {dim})}; }},
    {"sort", [](const at::Tensor& x, std::int64_t dim) { return Tensors{std::get<0>(x.sort(dim))}; }},
    {"stable sort",
     [](const at::Tensor& x, std::int64_t dim) { return Tensors{std::get<1>(x.sort(std::optional(true), dim))}; }},
    {"scatter",
     [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.scatter(dim, at::zeros_like(x, at::kLong), x)}; }},
    {"scatter_add", [](const at::Tensor& x,
                       std::int64_t dim) { return Tensors{x.scatter_add(dim, at::zeros_like(x, at::kLong), x)}; }},
    {"scatter_reduce",
     [](const at::Tensor& x,
        std::int64_t dim) { return Tensors{x.scatter_reduce(dim, at::zeros_like(x, at::kLong), x, "sum")}; }},
    {"index_add",
     [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.index_add(dim, index_along(x, dim), x)}; }},
    {"index_copy",
     [](const at::Tensor& x, std::int64_t dim) { return Tensors{x.index_copy(dim, index_along(x, dim), x)}; }},
};

// The sizes of all results; no value if the operator throws.
using SizesOfAll = std::optional<std::vector<std::vector<std::int64_t>>>;

SizesOfAll sizes_of(const DimensionCase& tested, const at::Tensor& x, std::int64_t dim) {
  try {
    SizesOfAll sizes(std::in_place);
    for (const at::Tensor& result : tested.apply(x, dim)) sizes->push_back(result.sizes().vec());
    return sizes;
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

TEST(FakeDimensions, AreThoseThatRealTensorsTake) {
  for (const DimensionCase& tested : kCases) {
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{}, {3}, {1}, {2, 4}}) {
      const at::Tensor real = at::ones(sizes);
      for (std::int64_t dim = -4; dim <= 3; ++dim) {
        const SizesOfAll expected = sizes_of(tested, real, dim);
        FakeMode mode(nullptr);
        const FakeMode::Scope scope(mode);
        EXPECT_EQ(sizes_of(tested, make_fake(spec_of(real)), dim), expected)
            << tested.name << " of " << sizes.size() << " dimensions, " << dim;
      }
    }
  }
}

std::string error_of_split(const at::Tensor& x) {
  try {
    x.split(2, 0);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(FakeDimensions, SplitOfATensorWithoutDimensions_ThrowsTheKernelsError) {
  const at::Tensor real = at::ones({});
  const std::string expected = error_of_split(real);
  FakeMode mode(nullptr);
  const FakeMode::Scope scope(mode);
  EXPECT_EQ(error_of_split(make_fake(spec_of(real))), expected);
}

}  // namespace
}  // namespace rehearse::capture::test

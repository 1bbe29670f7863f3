// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/shapes/shape_env.h>

// Calls of LibTorch that the tests make with real tensors and with fakes.
namespace rehearse::capture::test {

using Tensors = std::vector<at::Tensor>;

struct OperatorCase {
  std::string name;
  // One text for each input: "<dtype>[+] <size>... [layout]". dtype: f float, d double, h half, b bfloat16, l long, i
  // int, u uint8, B bool, c complex float. '+': requires a gradient. A size is a number, or n or m for a varying size.
  // Layouts: T (dimensions 0 and 1 swapped), CL (channels_last), S (a slice of a wider tensor), E (dimension 0
  // expanded).
  std::vector<std::string> inputs;
  std::function<Tensors(const Tensors& x)> body;
};

std::ostream& operator<<(std::ostream& out, const OperatorCase& one);

inline Tensors list(const Tensors& tensors) { return tensors; }
template <class... Items>
Tensors list(const std::tuple<Items...>& tensors) {
  return std::apply([](const auto&... items) { return Tensors{items...}; }, tensors);
}

template <class... More>
Tensors list(const at::Tensor& first, const More&... more) {
  return {first, more...};
}

#define REHEARSE_BODY(...) \
  []([[maybe_unused]] const ::rehearse::capture::test::Tensors& x) { return list(__VA_ARGS__); }

// A contiguous fake. Call it in a FakeMode::Scope.
at::Tensor fake(const std::vector<c10::SymInt>& sizes, c10::ScalarType dtype);

struct Sizes {
  std::int64_t n, m;
};

// Real inputs: small random numbers. Integers are 0 or 1 (only 0 if n or m is 1), so that they are valid indices
// everywhere.
Tensors real_inputs(const OperatorCase& one, Sizes sizes);
// Fakes of the same inputs. With `shapes`, the sizes n and m are symbols. Call it in a FakeMode::Scope.
Tensors fake_inputs(const OperatorCase& one, Sizes sizes, const std::shared_ptr<shapes::ShapeEnv>& shapes);

// The results of the body, then the gradients of the inputs that require one.
struct Results {
  Tensors forward, gradients;
};
Results run(const OperatorCase& one, const Tensors& inputs);

std::vector<OperatorCase> pointwise_cases();
std::vector<OperatorCase> view_cases();
std::vector<OperatorCase> reduction_cases();
std::vector<OperatorCase> matrix_cases();
std::vector<OperatorCase> layer_cases();
std::vector<OperatorCase> factory_cases();
std::vector<OperatorCase> index_cases();

}  // namespace rehearse::capture::test

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "operator_case.h"

// LibTorch chooses the layout of a convolution's result by the strides of input and weight, also by those of dimensions
// of size 1, which move no element.
namespace rehearse::capture::test {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::uint32_t kCalls = 1000;

struct Drawn {
  Ints sizes, strides;
};

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : numbers_(seed) {}

  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(numbers_() % static_cast<std::uint32_t>(limit));
  }

  // Strides of a tensor in which no two elements overlap. Dimensions of size 1 have strides of all kinds.
  Drawn layout(Ints sizes) {
    const std::size_t rank = sizes.size();
    std::vector<std::size_t> order(rank);  // from the innermost dimension to the outermost
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    const std::int64_t kind = below(4);
    if (kind == 1) std::rotate(order.begin(), order.end() - 2, order.end() - 1);  // channels last
    if (kind > 1) {
      for (std::size_t i = rank - 1; i > 0; --i)
        std::swap(order[i], order[static_cast<std::size_t>(below(static_cast<std::int64_t>(i) + 1))]);
    }
    const bool gap = below(4) == 0;
    const bool odd = below(3) == 0;
    Drawn drawn{sizes, Ints(rank, 1)};
    std::int64_t step = gap ? 2 : 1;
    for (const std::size_t d : order) {
      drawn.strides[d] = sizes[d] == 1 && odd ? 1 + below(5) : step;
      step *= sizes[d];
    }
    return drawn;
  }

 private:
  std::mt19937 numbers_;
};

at::Tensor real_of(const Drawn& drawn, c10::ScalarType dtype) {
  return at::ones({4096}, dtype).as_strided(drawn.sizes, drawn.strides);
}

at::Tensor fake_of(const Drawn& drawn, c10::ScalarType dtype) {
  TensorSpec spec;
  spec.sizes.assign(drawn.sizes.begin(), drawn.sizes.end());
  spec.strides.assign(drawn.strides.begin(), drawn.strides.end());
  spec.dtype = dtype;
  return make_fake(spec);
}

std::string layouts_of(const std::vector<at::Tensor>& tensors) {
  std::ostringstream out;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) out << tensor.sizes() << "@" << tensor.strides() << " ";
  }
  return out.str();
}

struct Convolution {
  Drawn input, weight, gradient;
  c10::ScalarType dtype;
  std::size_t space;
  bool transposed;
  std::int64_t groups, stride, dilation;
  bool backward;

  std::string run(const at::Tensor& x, const at::Tensor& w, const at::Tensor& g) const {
    const Ints zeros(space, 0);
    const Ints strides(space, stride), dilations(space, dilation);
    if (!backward) return layouts_of({at::convolution(x, w, {}, strides, zeros, dilations, transposed, zeros, groups)});
    const auto [dx, dw, db] =
        at::convolution_backward(g, x, w, at::IntArrayRef{transposed ? w.size(1) * groups : w.size(0)}, strides, zeros,
                                 dilations, transposed, zeros, groups, {true, true, true});
    return layouts_of({dx, dw, db});
  }
};

std::string text_of(const Convolution& one) {
  std::ostringstream out;
  out << one.dtype << " space " << one.space << (one.transposed ? " transposed" : "") << " groups " << one.groups
      << " stride " << one.stride << " dilation " << one.dilation << (one.backward ? " backward" : "");
  out << " input " << at::IntArrayRef(one.input.sizes) << "@" << at::IntArrayRef(one.input.strides) << " weight "
      << at::IntArrayRef(one.weight.sizes) << "@" << at::IntArrayRef(one.weight.strides) << " gradient "
      << at::IntArrayRef(one.gradient.sizes) << "@" << at::IntArrayRef(one.gradient.strides);
  return out.str();
}

Convolution drawn(std::uint32_t seed) {
  Draw draw(seed);
  Convolution one;
  one.space = static_cast<std::size_t>(1 + draw.below(3));
  one.dtype = draw.below(2) ? at::kFloat : at::kDouble;
  one.transposed = draw.below(3) == 0;
  one.groups = draw.below(4) == 0 ? 2 : 1;
  one.stride = 1 + draw.below(2);
  one.dilation = draw.below(4) == 0 ? 2 : 1;
  one.backward = draw.below(2) == 0;
  const std::int64_t n = 1 + draw.below(2), c = one.groups * (1 + draw.below(2)), o = one.groups * (1 + draw.below(2));
  Ints in{n, c}, kernel = one.transposed ? Ints{c, o / one.groups} : Ints{o, c / one.groups}, out{n, o};
  for (std::size_t d = 0; d < one.space; ++d) {
    kernel.push_back(1 + draw.below(2));
    const std::int64_t reach = one.dilation * (kernel.back() - 1) + 1;
    in.push_back(one.transposed ? 1 + draw.below(2) : reach + draw.below(2));
    out.push_back(one.transposed ? (in.back() - 1) * one.stride + reach : (in.back() - reach) / one.stride + 1);
  }
  one.input = draw.layout(in);
  one.weight = draw.layout(kernel);
  one.gradient = draw.layout(out);
  return one;
}

// What eager mode computes for the convolution. Nothing if it throws.
std::optional<std::string> eager(const Convolution& one) {
  try {
    return one.run(real_of(one.input, one.dtype), real_of(one.weight, one.dtype), real_of(one.gradient, one.dtype));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// The choice also depends on the number of threads.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { at::set_num_threads(before_); }

 private:
  const int before_ = at::get_num_threads();
};

TEST(Convolutions, WithAnyStrides_HaveTheLayoutOfEagerMode) {
  const OneThread one_thread;
  std::uint32_t compared = 0;
  for (std::uint32_t seed = 1; seed <= kCalls; ++seed) {
    const Convolution one = drawn(seed);
    const auto real = eager(one);
    if (!real) continue;
    ++compared;
    FakeMode mode(nullptr);
    const FakeMode::Scope scope(mode);
    EXPECT_EQ(one.run(fake_of(one.input, one.dtype), fake_of(one.weight, one.dtype), fake_of(one.gradient, one.dtype)),
              *real)
        << "seed " << seed << ": " << text_of(one);
  }
  EXPECT_GT(compared, kCalls - kCalls / 20);
}

}  // namespace
}  // namespace rehearse::capture::test

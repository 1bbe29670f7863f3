// SPDX-License-Identifier: BSD-3-Clause
// Arguments with various memory layouts. If the function changes an argument in place, the graph sees the argument's
// strides, even if the graph works on a copy.
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler::argument_layouts {
namespace {

using rehearse::test::BitEqual;

struct Layout {
  const char* name;
  at::Tensor (*make)(std::int64_t n, std::int64_t m);  // sizes [n, m, 4]
};

at::Tensor numbers(std::vector<std::int64_t> sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::arange(count, at::kDouble).view(sizes) / 16;
}

const Layout kLayouts[] = {
    {"contiguous", [](std::int64_t n, std::int64_t m) { return numbers({n, m, 4}); }},
    {"every second row", [](std::int64_t n, std::int64_t m) { return numbers({2 * n, m, 4}).slice(0, 1, 2 * n, 2); }},
    {"behind other rows", [](std::int64_t n, std::int64_t m) { return numbers({n + 2, m, 4}).slice(0, 2); }},
    {"part of wider rows", [](std::int64_t n, std::int64_t m) { return numbers({n, m, 7}).narrow(2, 2, 4); }},
    {"transposed", [](std::int64_t n, std::int64_t m) { return numbers({m, n, 4}).transpose(0, 1); }},
    {"transposed part",
     [](std::int64_t n, std::int64_t m) { return numbers({m + 1, n, 4}).transpose(0, 1).narrow(1, 1, m); }},
};

struct Change {
  const char* name;
  void (*apply)(const at::Tensor& x, const at::Tensor& s);
};

const Change kChanges[] = {
    {"diagonal", [](const at::Tensor& x, const at::Tensor& s) { x.copy_(s.expand_as(x)), x.diagonal().fill_(1); }},
    {"a part alone", [](const at::Tensor& x, const at::Tensor& s) { x.select(1, x.size(1) - 1).add_(s); }},
    {"a part by a size",
     [](const at::Tensor& x, const at::Tensor& s) { x.select_symint(1, x.sym_size(1) - 1).add_(s); }},
    {"select", [](const at::Tensor& x, const at::Tensor& s) { x.mul_(s), x.select(1, 0).mul_(s); }},
    {"view of a view", [](const at::Tensor& x, const at::Tensor& s) { x.mul_(s), x.transpose(0, 2)[1].fill_(2); }},
    {"by its strides",
     [](const at::Tensor& x, const at::Tensor& s) {
       x.mul_(s);
       x.as_strided_symint({x.sym_size(0), 2}, {x.sym_stride(0), x.sym_stride(2)}).fill_(3);
     }},
};

// Applies `change` to `x`. Returns the changed argument, and the gradient of the number `s` that `change` uses.
std::pair<at::Tensor, at::Tensor> outcome(const std::function<void(const at::Tensor&, const at::Tensor&)>& change,
                                          const at::Tensor& x) {
  const at::Tensor s = at::full({}, 1.5, at::kDouble).requires_grad_();
  change(x, s);
  torch::autograd::backward({x}, {(at::arange(1, x.numel() + 1, at::kDouble) / 8).view(x.sizes())});
  return {x.detach().clone(), s.grad()};
}

TEST(ArgumentLayouts, ChangedInPlace_GiveTheGradientsOfEager) {
  for (const Layout& layout : kLayouts) {
    for (const Change& change : kChanges) {
      for (const std::optional<bool> dynamic : {std::optional<bool>(), std::optional<bool>(true)}) {
        SCOPED_TRACE(std::string(layout.name) + ", " + change.name);
        auto compiled = compile(change.apply, {.dynamic = dynamic});
        for (const auto& [n, m] : {std::pair(3, 5), std::pair(3, 5), std::pair(4, 6), std::pair(6, 3)}) {
          const auto expected = outcome(change.apply, layout.make(n, m));
          const auto found =
              outcome([&](const at::Tensor& x, const at::Tensor& s) { compiled(x, s); }, layout.make(n, m));
          EXPECT_THAT(found.first, BitEqual(expected.first)) << n << " x " << m;
          EXPECT_TRUE(found.second.allclose(expected.second, 1e-12)) << n << " x " << m;
        }
      }
    }
  }
}

TEST(ArgumentLayouts, WhereATensorBegins_IsAGuardOfCodeThatAsks) {
  const at::Tensor rows = numbers({5, 4});
  const auto of_argument = [](const at::Tensor& x) { return x * x.storage_offset(); };
  const auto of_view = [](const at::Tensor& x) { return x * x.narrow(0, 1, 2).storage_offset(); };
  const auto asks_nothing = [](const at::Tensor& x) { return x.narrow(0, 1, 2) * x.select(0, 0) + x.contiguous()[1]; };
  for (const auto& [function, compiles] :
       {std::pair<at::Tensor (*)(const at::Tensor&), std::size_t>(of_argument, 5), {of_view, 5}, {asks_nothing, 1}}) {
    for (const std::optional<bool> dynamic : {std::optional<bool>(), std::optional<bool>(true)}) {
      auto compiled = compile(function, {.dynamic = dynamic});
      for (int call = 0; call < 10; ++call) {
        const at::Tensor x = rows[call % 5];
        EXPECT_THAT(compiled(x), BitEqual(function(x))) << call;
      }
      EXPECT_EQ(compiled.stats().compiles, compiles);
    }
  }
}

// The function makes overlapping views of an argument before a read, and writes to them after the read.
TEST(ArgumentLayouts, ElementsThatShareMemory) {
  const auto function = [](const at::Tensor& x, const at::Tensor& s) {
    const at::Tensor windows = x.unfold(0, 2, 1);
    if ((s > 0).item<bool>()) windows.add_(s);
  };
  auto compiled = compile(function);
  const auto gradient_by = [](auto&& f) {
    const at::Tensor leaf = numbers({3, 4}).requires_grad_(), x = leaf * 1;
    f(x, at::ones({}, at::kDouble).requires_grad_());
    x.sum().backward();
    return leaf.grad();
  };
  for (int call = 0; call < 2; ++call) EXPECT_THAT(gradient_by(compiled), BitEqual(gradient_by(function)));
}

// Lazy bits say that a tensor is the conjugate of its memory, or the negative of its memory (such as the imaginary part
// of a conjugate).
TEST(ArgumentLayouts, LazyBitsAreThoseOfEager) {
  using Function = at::Tensor (*)(const at::Tensor& z);
  const std::pair<const char*, Function> functions[] = {
      {"resolve_conj", [](const at::Tensor& z) { return z.resolve_conj(); }},
      {"conj", [](const at::Tensor& z) { return z.conj(); }},
      {"imag", [](const at::Tensor& z) { return at::imag(z); }},
      {"resolve_neg", [](const at::Tensor& z) { return at::imag(z).resolve_neg(); }},
      {"view_as_real", [](const at::Tensor& z) { return at::view_as_real(z.resolve_conj()); }},
      {"a product", [](const at::Tensor& z) { return z * z.conj(); }},
      {"behind a read",
       [](const at::Tensor& z) {
         const at::Tensor w = (z * 2).conj();
         return at::real(z).sum().item<double>() > 0 ? w.resolve_conj() : w;
       }},
      {"changed behind a read",
       [](const at::Tensor& z) {
         const at::Tensor w = (z * 2).conj();
         return at::real(z).sum().item<double>() > 0 ? w.mul_(2).resolve_conj() : w;
       }},
  };
  for (const auto& [name, function] : functions) {
    for (const bool is_conj : {false, true}) {
      for (const bool requires_grad : {false, true}) {
        SCOPED_TRACE(std::string(name) + (is_conj ? " of a conjugate" : ""));
        auto compiled = compile(function);
        const auto seen = [&](auto&& f) {
          const at::Tensor leaf = at::complex(numbers({3}) + 1, numbers({3}) + 2).requires_grad_(requires_grad);
          const at::Tensor z = is_conj ? leaf.conj() : leaf;
          at::Tensor result = f(z);
          if (result.requires_grad()) at::real(result * 3).sum().backward();
          const bool shares = result.is_alias_of(leaf);
          return std::tuple(result.detach().clone(), result.is_conj(), result.is_neg(), result.strides().vec(), shares,
                            leaf.grad().defined() ? leaf.grad().resolve_conj() : at::zeros({}));
        };
        for (int call = 0; call < 3; ++call) {
          const auto found = seen(compiled), expected = seen(function);
          EXPECT_THAT(std::get<0>(found), BitEqual(std::get<0>(expected)));
          EXPECT_EQ(std::get<1>(found), std::get<1>(expected));
          EXPECT_EQ(std::get<2>(found), std::get<2>(expected));
          EXPECT_EQ(std::get<3>(found), std::get<3>(expected));
          EXPECT_EQ(std::get<4>(found), std::get<4>(expected));
          EXPECT_THAT(std::get<5>(found), BitEqual(std::get<5>(expected)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::argument_layouts

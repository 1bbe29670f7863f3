// SPDX-License-Identifier: BSD-3-Clause
// Arguments that lie in memory in several ways and are changed in place: what the graph computes of strides is
// about the argument, whatever tensor it works on.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/compile/compile.h>

namespace rehearse::compiler::argument_layouts {
namespace {

struct Layout {
  const char* name;
  at::Tensor (*make)(std::int64_t n, std::int64_t m);  // [n, m, 4]
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
    {"select", [](const at::Tensor& x, const at::Tensor& s) { x.mul_(s), x.select(1, 0).mul_(s); }},
    {"view of a view", [](const at::Tensor& x, const at::Tensor& s) { x.mul_(s), x.transpose(0, 2)[1].fill_(2); }},
    {"by its strides",
     [](const at::Tensor& x, const at::Tensor& s) {
       x.mul_(s);
       x.as_strided_symint({x.sym_size(0), 2}, {x.sym_stride(0), x.sym_stride(2)}).fill_(3);
     }},
};

// The changed argument, and the gradient of the factor.
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
          EXPECT_TRUE(found.first.equal(expected.first)) << n << " x " << m;
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
        EXPECT_TRUE(compiled(x).equal(function(x))) << call;
      }
      EXPECT_EQ(compiled.stats().compiles, compiles);
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::argument_layouts

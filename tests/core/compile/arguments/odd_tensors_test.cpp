// SPDX-License-Identifier: BSD-3-Clause
// Contract: code that a graph cannot hold runs in eager mode, whatever kind of tensor or operator it uses. If code runs
// well without compile(), no internal error of the capture reaches its caller.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

// These tests have a namespace of their own, because a unity build compiles several sources of this program as one.
namespace rehearse::compiler::odd_tensors {
namespace {

using rehearse::test::BitEqual;

using Function = at::Tensor (*)(const at::Tensor& x);
using Input = at::Tensor (*)(std::int64_t rows);

at::Tensor dense(std::int64_t rows) { return at::arange(rows * 3, at::kFloat).view({rows, 3}).remainder(5) - 1; }

struct OddCase {
  const char* name;
  Input input;
  Function function;
};

const OddCase kCases[] = {
    {"quantized", [](std::int64_t rows) { return at::quantize_per_tensor(dense(rows), 0.5, 1, at::kQInt8); },
     [](const at::Tensor& x) { return x.dequantize() * 2; }},
    {"quantized by channel",
     [](std::int64_t rows) {
       return at::quantize_per_channel(dense(rows), at::full({3}, 0.5, at::kDouble), at::zeros({3}, at::kLong), 1,
                                       at::kQInt8);
     },
     [](const at::Tensor& x) { return x.dequantize() * 2; }},
    {"quantized inside", dense,
     [](const at::Tensor& x) { return at::quantize_per_tensor(x, 0.5, 1, at::kQInt8).dequantize(); }},
    {"sparse CSR", [](std::int64_t rows) { return dense(rows).to_sparse_csr(); },
     [](const at::Tensor& x) { return x.to_dense() * 2; }},
    {"sparse CSR product", [](std::int64_t rows) { return dense(rows).to_sparse_csr(); },
     [](const at::Tensor& x) { return x.matmul(at::ones({3, 2})); }},
    {"sparse CSC", [](std::int64_t rows) { return dense(rows).to_sparse_csc(); },
     [](const at::Tensor& x) { return x.to_dense() * 2; }},
    {"sparse COO", [](std::int64_t rows) { return dense(rows).to_sparse(); },
     [](const at::Tensor& x) { return x.to_dense() * 2; }},
    {"sparse COO inside", dense, [](const at::Tensor& x) { return x.to_sparse().to_dense() * 2; }},
    {"sparse CSR inside", dense, [](const at::Tensor& x) { return x.to_sparse_csr().to_dense() * 2; }},
    {"nested", [](std::int64_t rows) { return at::_nested_tensor_from_tensor_list({dense(rows), dense(2)}); },
     [](const at::Tensor& x) { return at::nested_to_padded_tensor(x * 2, 0.0); }},
    {"nested inside", dense,
     [](const at::Tensor& x) {
       return at::nested_to_padded_tensor(at::_nested_tensor_from_tensor_list({x, x * 2}), 0.0);
     }},
    {"mkldnn", [](std::int64_t rows) { return dense(rows).to_mkldnn(); },
     [](const at::Tensor& x) { return x.to_dense() * 2; }},
    {"mkldnn inside", dense, [](const at::Tensor& x) { return x.to_mkldnn().to_dense() + 1; }},
    {"out= into an empty tensor", dense,
     [](const at::Tensor& x) {
       at::Tensor out = at::empty({0});
       at::add_out(out, x, x);
       return out * 2;
     }},
    {"out= of an empty tensor that grows", dense,
     [](const at::Tensor& x) {
       at::Tensor out = at::empty({0}, at::kLong);
       at::argmax_out(out, x, 1);
       return out + 1;
     }},
    {"out= of a composite", dense,
     [](const at::Tensor& x) {
       at::Tensor out = at::empty({0});
       at::matmul_out(out, x, x.t());
       return out + 1;
     }},
    {"out= of two results", dense,
     [](const at::Tensor& x) {
       at::Tensor values = at::empty({0}), places = at::empty({0}, at::kLong);
       at::sort_out(values, places, x, 0);
       return values + places;
     }},
    {"out= of the right size", dense,
     [](const at::Tensor& x) {
       at::Tensor out = at::empty_like(x);
       at::mul_out(out, x, x);
       return out + 1;
     }},
    {"sizes of what out= gave", dense,
     [](const at::Tensor& x) {
       at::Tensor out = at::empty({0}), places = at::empty({0}, at::kLong);
       at::mul_out(out, x, x);
       at::argmin_out(places, x, 1);
       return out.view_symint({out.sym_size(1), -1}) * at::Scalar(places.sym_size(0));
     }},
    {"out= of cat", dense,
     [](const at::Tensor& x) {
       at::Tensor out = at::empty({0});
       at::cat_out(out, {x, x});
       return out + 1;
     }},
    {"resize_", dense,
     [](const at::Tensor& x) {
       at::Tensor y = x.clone();
       y.resize_({2, 3});
       return y + 1;
     }},
    {"slice_scatter", dense, [](const at::Tensor& x) { return x.slice_scatter(at::ones({2, 3}), 0, 0, 2) * 2; }},
    {"slice_scatter of all but one", dense,
     [](const at::Tensor& x) { return at::slice_scatter_symint(x, x.slice(0, 1), 0, 0, x.sym_size(0) - 1) * 2; }},
    {"slice_scatter to the end", dense, [](const at::Tensor& x) { return x.slice_scatter(x.slice(0, 1) * 3, 0, 1); }},
    {"select_scatter", dense, [](const at::Tensor& x) { return x.select_scatter(x[0], 0, 1) * 2; }},
    {"diagonal_scatter", dense, [](const at::Tensor& x) { return x.diagonal_scatter(x.diagonal() * 2); }},
    {"as_strided_scatter", dense,
     [](const at::Tensor& x) { return x.as_strided_scatter(at::ones({2, 2}), {2, 2}, {3, 1}); }},
    {"expand", dense, [](const at::Tensor& x) { return x.sum(0, true).expand({x.size(0), 3}) * 2; }},
    {"expand by a symbol", dense, [](const at::Tensor& x) { return x.sum(0).expand_symint({x.sym_size(0), 3}) * 2; }},
    {"expand of what is there", dense, [](const at::Tensor& x) { return x.expand_symint({2, x.sym_size(0), 3}) * 2; }},
    {"expand with -1", dense, [](const at::Tensor& x) { return x.expand({2, -1, -1}) * 2; }},
    {"expand_as", dense, [](const at::Tensor& x) { return x.sum(0).expand_as(x) * 2; }},
    {"expand of a column", dense, [](const at::Tensor& x) { return x.select(1, 0).unsqueeze(1).expand_as(x) * 2; }},
    {"expand to another number", dense,
     [](const at::Tensor& x) { return x.unsqueeze(1).expand_symint({-1, x.sym_size(0) * 2, 3}).sum(1); }},
    {"mode of integers", dense, [](const at::Tensor& x) { return std::get<0>(x.to(at::kLong).mode(0)) * 2; }},
    {"mode of floats", dense, [](const at::Tensor& x) { return std::get<0>(x.mode(0)) * 2; }},
    {"median of integers", dense, [](const at::Tensor& x) { return std::get<0>(x.to(at::kLong).median(0)); }},
    {"kthvalue of integers", dense, [](const at::Tensor& x) { return std::get<0>(x.to(at::kLong).kthvalue(2, 0)); }},
    {"cummax of integers", dense, [](const at::Tensor& x) { return std::get<0>(x.to(at::kLong).cummax(0)); }},
    {"bincount", dense, [](const at::Tensor& x) { return x.abs().to(at::kLong).flatten().bincount(); }},
    {"histc", dense, [](const at::Tensor& x) { return x.histc(4, -1, 4); }},
    {"unique_consecutive", dense, [](const at::Tensor& x) { return std::get<0>(at::unique_consecutive(x.flatten())); }},
    {"unique_dim", dense, [](const at::Tensor& x) { return std::get<0>(at::unique_dim(x, 0)); }},
    {"searchsorted", dense, [](const at::Tensor& x) { return at::searchsorted(std::get<0>(x.flatten().sort()), x); }},
    {"combinations", dense, [](const at::Tensor& x) { return at::combinations(x[0], 2); }},
    {"tensordot", dense, [](const at::Tensor& x) { return at::tensordot(x, x, {0}, {0}); }},
    {"segment_reduce", dense,
     [](const at::Tensor& x) { return at::segment_reduce(x, "sum", at::tensor({1, 2}, at::kLong), {}, {}, 0, true); }},
};

class OddTensors : public testing::TestWithParam<OddCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, OddTensors, testing::ValuesIn(kCases),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

TEST_P(OddTensors, RunAsInEagerMode) {
  const OddCase& tested = GetParam();
  for (const char* backend : {"eager", "aot_eager"}) {
    for (const std::optional<bool> dynamic : {std::optional<bool>(), std::optional<bool>(true)}) {
      auto compiled = compile(tested.function, {.backend = backend, .dynamic = dynamic});
      for (const std::int64_t rows : {3, 4, 5, 3, 4}) {
        at::Tensor expected;
        try {
          expected = tested.function(tested.input(rows));
        } catch (const std::exception&) {
          EXPECT_ANY_THROW(compiled(tested.input(rows))) << tested.name;
          continue;
        }
        try {
          const at::Tensor found = compiled(tested.input(rows));
          ASSERT_EQ(found.layout(), expected.layout()) << tested.name << " of " << rows << " rows";
          EXPECT_THAT(found, BitEqual(expected)) << tested.name << " of " << rows << " rows";
          EXPECT_EQ(found.strides(), expected.strides()) << tested.name << " of " << rows << " rows";
        } catch (const std::exception& error) {
          ADD_FAILURE() << tested.name << " of " << rows << " rows: " << std::string(error.what()).substr(0, 300);
        }
      }
    }
  }
}

// One function gets dense tensors, then tensors of another kind, then a dense one. compile() captures or refuses them,
// and never confuses them.
TEST(OddTensors, BehindDenseOnes_RunAsInEagerMode) {
  for (const OddCase& tested : kCases) {
    if (tested.input == dense) continue;
    const auto function = [](const at::Tensor& x) { return x.clone(); };
    auto compiled = compile(function);
    for (const bool is_dense : {true, true, false, false, true}) {
      const at::Tensor x = is_dense ? dense(3) : tested.input(3);
      try {
        EXPECT_EQ(compiled(x).layout(), x.layout()) << tested.name;
      } catch (const std::exception& error) {
        ADD_FAILURE() << tested.name << ": " << std::string(error.what()).substr(0, 300);
      }
    }
  }
}

// A graph has no tangents, so a call with one does not use the graph of a call without.
TEST(OddTensors, TangentAfterACallWithoutOne_IsKept) {
  auto f = compile([](const at::Tensor& x) { return x * x; });
  const at::Tensor x = at::arange(1, 4, at::kFloat);
  EXPECT_THAT(f(x), BitEqual(x * x));
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  {
    const at::Tensor dual = x.clone();
    dual._set_fw_grad(at::ones({3}), level, false);
    const at::Tensor tangent = f(dual)._fw_grad(level);
    ASSERT_TRUE(tangent.defined());
    EXPECT_THAT(tangent, BitEqual(2 * x));
  }
  torch::autograd::ForwardADLevel::release_idx(level);
  EXPECT_THAT(f(x), BitEqual(x * x));
}

}  // namespace
}  // namespace rehearse::compiler::odd_tensors

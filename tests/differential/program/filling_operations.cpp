// SPDX-License-Identifier: BSD-3-Clause
// Statements that make a tensor and fill it, at once or part by part.
#include "differential/program/operation.h"

namespace rehearse_test::differential {
namespace {

using G = const Given&;

at::Tensor row_by_row(const at::Tensor& from, double factor) {
  at::Tensor z = at::zeros_like(from);
  for (std::int64_t i = 0; i < from.size(0); ++i) z[i] = from[i] * factor;
  return z;
}

at::Tensor every_other_row(const at::Tensor& from) {
  at::Tensor z = at::zeros_like(from);
  for (std::int64_t i = 0; i < from.size(0); i += 2) z.select(0, i).add_(from[i]);
  return z;
}

at::Tensor in_halves(const at::Tensor& from, const at::Tensor& other) {
  at::Tensor z = at::empty_like(from);
  const c10::SymInt half = from.sym_size(0) / 2;
  z.slice_symint(0, 0, half).copy_(from.slice_symint(0, 0, half));
  z.slice_symint(0, half).copy_(other.slice_symint(0, half));
  return z;
}

at::Tensor padded(const at::Tensor& from, const c10::SymInt& more) {
  std::vector<c10::SymInt> sizes(from.sym_sizes().begin(), from.sym_sizes().end());
  sizes.at(0) = sizes.at(0) + more;
  at::Tensor z = at::zeros_symint(sizes, from.options().requires_grad(false));
  z.narrow_symint(0, more, from.sym_size(0)).copy_(from);
  return z;
}

at::Tensor running_sum(const at::Tensor& from) {
  at::Tensor z = from.new_zeros_symint(from.sym_sizes());
  for (std::int64_t i = 0; i < from.size(0); ++i) z[i].copy_(i > 0 ? z[i - 1] + from[i] : from[i]);
  return z;
}

const Operation kFillingOperations[] = {
    {"zeros_like", "fill", "f", 1, {}, "at::zeros_like($0)", [](G g) -> Tensors { return {at::zeros_like(g[0])}; }},
    {"ones",
     "fill",
     "",
     1,
     {Draw::Size, Draw::Size},
     "at::ones_symint({#0, #1}, at::kDouble)",
     [](G g) -> Tensors { return {at::ones_symint({g.size(0), g.size(1)}, at::kDouble)}; }},
    {"full",
     "fill",
     "",
     1,
     {Draw::Size},
     "at::full_symint({#0}, %, at::kDouble)",
     [](G g) -> Tensors { return {at::full_symint({g.size(0)}, g.factor, at::kDouble)}; }},
    {"arange",
     "fill",
     "",
     1,
     {Draw::Size},
     "at::arange(#0, at::kDouble)",
     [](G g) -> Tensors { return {at::arange(g.size(0), at::kDouble)}; }},
    {"row by row",
     "fill",
     "f",
     1,
     {},
     "[] { z = zeros_like($0); for (i) z[i] = $0[i] * %; return z; }()",
     [](G g) -> Tensors { return {row_by_row(g[0], g.factor)}; }},
    {"every other row",
     "fill",
     "f",
     1,
     {},
     "[] { z = zeros_like($0); for (i += 2) z.select(0, i).add_($0[i]); return z; }()",
     [](G g) -> Tensors { return {every_other_row(g[0])}; }},
    {"in halves",
     "fill",
     "ff",
     1,
     {},
     "[] { z = empty_like($0); h = $0.sym_size(0) / 2; z.slice(0, 0, h).copy_($0.slice(0, 0, h)); "
     "z.slice(0, h).copy_($1.slice(0, h)); return z; }()",
     [](G g) -> Tensors { return {in_halves(g[0], g[1])}; },
     Match::Same},
    {"padded",
     "fill",
     "f",
     1,
     {Draw::Few},
     "[] { z = zeros({$0.size(0) + #0, ...}); z.narrow(0, #0, $0.size(0)).copy_($0); return z; }()",
     [](G g) -> Tensors { return {padded(g[0], g.size(0))}; }},
    {"running sum",
     "fill",
     "f",
     1,
     {},
     "[] { z = new_zeros_like($0); for (i) z[i].copy_(i > 0 ? z[i - 1] + $0[i] : $0[i]); return z; }()",
     [](G g) -> Tensors { return {running_sum(g[0])}; }},
    {"out=",
     "out",
     "ff",
     1,
     {},
     "[] { z = empty_like($0); at::add_out(z, $0.detach(), $1.detach()); return z; }()",
     [](G g) -> Tensors {
       at::Tensor z = at::empty_like(g[0], g[0].options().requires_grad(false));
       at::add_out(z, g[0].detach(), g[1].detach());
       return {z};
     },
     Match::Same},
    {"out= of nothing",
     "out",
     "ff",
     1,
     {},
     "[] { z = empty({0}); at::mul_out(z, $0.detach(), $1.detach()); return z; }()",
     [](G g) -> Tensors {
       at::Tensor z = at::empty({0}, g[0].options().requires_grad(false));
       at::mul_out(z, g[0].detach(), g[1].detach());
       return {z};
     },
     Match::Broadcasts},
};

}  // namespace

Operations filling_operations() { return {std::begin(kFillingOperations), std::end(kFillingOperations)}; }

}  // namespace rehearse_test::differential

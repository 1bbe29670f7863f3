// SPDX-License-Identifier: BSD-3-Clause
// Statements with eager regions, opaque functions, or members that keep values between calls. Also statements with
// in-place operators, attention, losses and views.
#include <rehearse/capture/opaque.h>
#include <rehearse/compile/eager_region.h>

#include "differential/program/net.h"
#include "differential/program/operation.h"

namespace rehearse_test::differential {
namespace {

using G = const Given&;

// A member that the first call fills.
at::Tensor with_cache(G g) {
  if (!g.net->cache.defined()) g.net->cache = at::arange(1, kWidth + 1, at::kDouble) / 4;
  return g[0] * g.net->cache[0] + g.net->cache.sum();
}

// Keeps a moving average in a member. Each call puts a new tensor into the member.
at::Tensor from_average(G g) {
  const at::Tensor mean = g[0].detach().mean();
  g.net->average = g.net->average.defined() ? g.net->average * 0.5 + mean : mean;
  return g[0] - g.net->average;
}

at::Tensor in_region(G g) {
  return rehearse::eager_region([](const at::Tensor& x) { return x * (x.numel() > 6 ? 2 : 3); }, g[0]);
}

void changed_in_region(G g) {
  rehearse::eager_region([](at::Tensor& x) { x.mul_(0.5); }, g[0]);
}

const Operation kKeepingOperations[] = {
    {"eager region",
     "eager_region",
     "f",
     1,
     {},
     "eager_region([](x) { return x * (x.numel() > 6 ? 2 : 3); }, $0)",
     [](G g) -> Tensors { return {in_region(g)}; }},
    {"change in eager region",
     "eager_region",
     "f",
     0,
     {},
     "eager_region([](x) { x.mul_(0.5); }, $0)",
     [](G g) -> Tensors { return changed_in_region(g), Tensors(); },
     Match::Any,
     Control::None,
     0},
    {"opaque",
     "opaque",
     "f",
     1,
     {},
     "opaque([](x) { return x.sin() * x; }, $0)",
     [](G g) -> Tensors { return {rehearse::opaque([](const at::Tensor& x) { return x.sin() * x; }, g[0])}; }},
    {"opaque of two",
     "opaque",
     "ff",
     1,
     {},
     "opaque([](x, y) { return x * y + y; }, $0, $1)",
     [](G g) -> Tensors {
       return {rehearse::opaque([](const at::Tensor& x, const at::Tensor& y) { return x * y + y; }, g[0], g[1])};
     },
     Match::Broadcasts},
    {"cache in member",
     "member",
     "f",
     1,
     {},
     "[] { if (!cache.defined()) cache = arange / 4; return $0 * cache[0] + cache.sum(); }()",
     [](G g) -> Tensors { return {with_cache(g)}; }},
    {"average in member",
     "member",
     "f",
     1,
     {},
     "[] { m = $0.detach().mean(); average = average.defined() ? average * 0.5 + m : m; return $0 - average; }()",
     [](G g) -> Tensors { return {from_average(g)}; }},
    {"index_fill_",
     "inplace",
     "fi",
     0,
     {Draw::Dimension},
     "$0.index_fill_(#0, $1, %)",
     [](G g) -> Tensors { return g[0].index_fill_(g.plain(0), g[1], g.factor), Tensors(); },
     Match::Any,
     Control::None,
     0},
    {"scatter_",
     "inplace",
     "fif",
     0,
     {Draw::Dimension},
     "$0.scatter_(#0, $1, $2)",
     [](G g) -> Tensors { return g[0].scatter_(g.plain(0), g[1], g[2]), Tensors(); },
     Match::Same,
     Control::None,
     0},
    {"cumsum_",
     "inplace",
     "f",
     0,
     {Draw::Dimension},
     "$0.cumsum_(#0)",
     [](G g) -> Tensors { return g[0].cumsum_(g.plain(0)), Tensors(); },
     Match::Any,
     Control::None,
     0},
    {"attention",
     "matmul",
     "fff",
     1,
     {},
     "at::scaled_dot_product_attention($0, $1, $2)",
     [](G g) -> Tensors { return {at::scaled_dot_product_attention(g[0], g[1], g[2])}; },
     Match::Same},
    // The loss itself has a storage of more than one element. The further elements are uninitialised, and an
    // as_strided() in a later statement would read them. The storage of the clone has only one element.
    {"mse_loss",
     "reduce",
     "ff",
     1,
     {},
     "at::mse_loss($0, $1).clone()",
     [](G g) -> Tensors { return {at::mse_loss(g[0], g[1]).clone()}; },
     Match::Same},
    {"nll_loss",
     "reduce",
     "fi",
     1,
     {},
     "at::cross_entropy_loss($0, $1)",
     [](G g) -> Tensors { return {at::cross_entropy_loss(g[0], g[1])}; }},
    {"double sizes",
     "view",
     "f",
     1,
     {Draw::Size},
     "$0.reshape_symint({#0 * 2, -1})",
     [](G g) -> Tensors { return {g[0].reshape_symint({g.size(0) * 2, -1})}; }},
    {"half",
     "view",
     "f",
     1,
     {Draw::Dimension, Draw::Size},
     "$0.narrow_symint(#0, 0, #1 / 2)",
     [](G g) -> Tensors { return {g[0].narrow_symint(g.plain(0), 0, g.size(1) / 2)}; }},
};

}  // namespace

Operations keeping_operations() { return {std::begin(kKeepingOperations), std::end(kKeepingOperations)}; }

}  // namespace rehearse_test::differential

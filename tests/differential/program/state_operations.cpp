// SPDX-License-Identifier: BSD-3-Clause
// Statements about properties of tensors other than their elements: whether they are leaves, the sizes of their
// storages, and their versions.
#include <rehearse/capture/storage.h>
#include <rehearse/capture/versions.h>

#include "differential/program/operation.h"

namespace rehearse_test::differential {
namespace {

using G = const Given&;

at::Tensor freed_and_filled(G g) {
  const at::Tensor own = g[0].detach().clone();
  const c10::SymInt bytes = rehearse::storage_bytes(own);
  rehearse::resize_storage(own, 0);
  rehearse::resize_storage(own, bytes);
  const at::NoGradGuard no_grad;
  return own.fill_(g.factor);
}

at::Tensor grown(G g) {
  const at::Tensor own = g[0].detach().clone();
  rehearse::resize_storage(own, rehearse::storage_bytes(own) * 2);
  return own * g[0];
}

void changed_without_a_version(G g) {
  const at::NoGradGuard no_grad;
  const rehearse::PreserveVersion keep(g[0]);
  g[0].mul_(g.factor);
}

const Operation kStateOperations[] = {
    {"leaf",
     "leaf",
     "f",
     1,
     {},
     "$0.detach().requires_grad_()",
     [](G g) -> Tensors { return {g[0].detach().requires_grad_()}; }},
    {"leaf of its own",
     "leaf",
     "f",
     2,
     {},
     "[] { p = ($0 * %).detach().requires_grad_(); return {p, p.sin()}; }()",
     [](G g) -> Tensors {
       const at::Tensor p = (g[0] * g.factor).detach().requires_grad_();
       return {p, p.sin()};
     }},
    {"freed and filled",
     "storage",
     "f",
     1,
     {},
     "[] { y = $0.detach().clone(); n = storage_bytes(y); resize_storage(y, 0); resize_storage(y, n); "
     "NoGradGuard no_grad; return y.fill_(%); }()",
     [](G g) -> Tensors { return {freed_and_filled(g)}; }},
    {"grown",
     "storage",
     "f",
     1,
     {},
     "[] { y = $0.detach().clone(); resize_storage(y, storage_bytes(y) * 2); return y * $0; }()",
     [](G g) -> Tensors { return {grown(g)}; }},
    {"if large",
     "storage",
     "f",
     1,
     {},
     "storage_bytes($0) > 100",
     [](G g) { return Tensors(rehearse::storage_bytes(g[0]) > 100 ? 1 : 0); },
     Match::Any,
     Control::Branch},
    {"counted mul_",
     "versions",
     "f",
     0,
     {},
     "[] { NoGradGuard no_grad; $0.mul_(%); }()",
     [](G g) -> Tensors {
       const at::NoGradGuard no_grad;
       return g[0].mul_(g.factor), Tensors();
     },
     Match::Any,
     Control::None,
     0},
    {"uncounted mul_",
     "versions",
     "f",
     0,
     {},
     "[] { NoGradGuard no_grad; PreserveVersion keep($0); $0.mul_(%); }()",
     [](G g) -> Tensors { return changed_without_a_version(g), Tensors(); },
     Match::Any,
     Control::None,
     0},
};

}  // namespace

Operations state_operations() { return joined({kStateOperations}); }

}  // namespace rehearse_test::differential

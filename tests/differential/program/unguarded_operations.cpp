// SPDX-License-Identifier: BSD-3-Clause
// Statements that do something besides calling operators: change a number argument, start a thread, or ask for a fact
// about a tensor other than its sizes. Also statements that take a number from data, which may be negative.
#include <future>

#include <rehearse/capture/forward_capture.h>

#include "differential/program/net.h"
#include "differential/program/operation.h"

namespace rehearse_test::differential {
namespace {

using G = const Given&;

Tensors answer(bool yes) { return Tensors(yes ? 1 : 0); }

// The function rethrows the thread's exception. The thread uses a tensor of the function, not only the module's
// parameters.
at::Tensor in_thread(G g) {
  const at::Tensor y = g[0] * g.factor;
  return std::async(std::launch::async, [&] { return y + 1; }).get();
}

c10::SymInt sign_of(const at::Tensor& x) { return rehearse::sym_item(x.sum().sign().to(at::kLong)); }

int asked_and_refused(G g) {
  try {
    return g[0].detach().flatten()[0].data_ptr<double>() != nullptr ? 2 : 3;
  } catch (const std::exception&) {
    return 5;
  }
}

const Operation kArgumentOperations[] = {
    {"advance steps", "argument", "", 0, {}, "steps += 2", [](G g) -> Tensors { return *g.steps += 2, Tensors(); }},
    {"add size to steps",
     "argument",
     "a",
     0,
     {Draw::Size},
     "steps += $0.dim() + #0",
     [](G g) -> Tensors { return *g.steps += g[0].dim() + g.plain(0), Tensors(); }},
    {"by steps", "argument", "f", 1, {}, "$0 * steps", [](G g) -> Tensors { return {g[0] * *g.steps}; }},
};

const Operation kThreadOperations[] = {
    {"in a thread",
     "thread",
     "f",
     1,
     {},
     "[] { y = $0 * %; return std::async(std::launch::async, [&] { return y + 1; }).get(); }()",
     [](G g) -> Tensors { return {in_thread(g)}; }},
};

const Operation kFactOperations[] = {
    {"if leaf",
     "facts",
     "f",
     1,
     {},
     "$0.is_leaf()",
     [](G g) { return answer(g[0].is_leaf()); },
     Match::Any,
     Control::Branch},
    {"if view",
     "facts",
     "f",
     1,
     {},
     "$0.is_view()",
     [](G g) { return answer(g[0].is_view()); },
     Match::Any,
     Control::Branch},
    {"count view",
     "facts",
     "f",
     0,
     {},
     "steps += $0.is_view() ? 3 : 1",
     [](G g) -> Tensors { return *g.steps += g[0].is_view() ? 3 : 1, Tensors(); }},
    {"if changed",
     "facts",
     "",
     1,
     {},
     "vector._version() > 0",
     [](G g) { return answer(g.net->vector._version() > 0); },
     Match::Any,
     Control::Branch},
    {"if offset",
     "facts",
     "f",
     1,
     {},
     "$0.storage_offset() > 0",
     [](G g) { return answer(g[0].storage_offset() > 0); },
     Match::Any,
     Control::Branch},
    {"if it has a gradient",
     "facts",
     "",
     1,
     {},
     "vector.grad().defined()",
     [](G g) { return answer(g.net->vector.grad().defined()); },
     Match::Any,
     Control::Branch},
    {"swallowed for a part",
     "swallow",
     "f",
     1,
     {},
     "$0 * [] { try { return $0.detach().flatten()[0].data_ptr<double>() ? 2 : 3; } "
     "catch (const std::exception&) { return 5; } }()",
     [](G g) -> Tensors { return {g[0] * asked_and_refused(g)}; }},
};

const Operation kNegativeOperations[] = {
    {"row from the end",
     "unbacked",
     "f",
     1,
     {},
     "$0.narrow_symint(0, rehearse::sym_item($0.sum().sign().to(at::kLong)), 1)",
     [](G g) -> Tensors { return {g[0].narrow_symint(0, sign_of(g[0]), 1)}; }},
    {"negative length",
     "unbacked",
     "f",
     1,
     {},
     "$0.narrow_symint(0, 0, rehearse::sym_item($0.sum().sign().to(at::kLong)))",
     [](G g) -> Tensors { return {g[0].narrow_symint(0, 0, sign_of(g[0]))}; }},
    {"slice from the end",
     "unbacked",
     "f",
     1,
     {},
     "$0.slice_symint(0, rehearse::sym_item($0.sum().sign().to(at::kLong)))",
     [](G g) -> Tensors { return {g[0].slice_symint(0, sign_of(g[0]))}; }},
};

}  // namespace

Operations unguarded_operations() {
  return joined({kArgumentOperations, kThreadOperations, kFactOperations, kNegativeOperations});
}

}  // namespace rehearse_test::differential

// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ExpandUtils.h>

#include "capture/fake/call/layout.h"
#include "capture/fake/infer/infer.h"

namespace rehearse::capture {
namespace {

// All operands must broadcast to the one that is written.
void check_broadcast(const Call& call) {
  const at::Tensor& self = call.tensor(call.facts.written.front());
  for (const c10::IValue& value : call.arguments) {
    for_each_tensor(value, [&](const at::Tensor& other) {
      if (other.is_same(self)) return;
      const SymInts together = at::infer_size_symint(self.sym_sizes(), other.sym_sizes());
      TORCH_CHECK(together.size() == static_cast<std::size_t>(self.dim()), call.facts.name, ": output with shape ",
                  self.sym_sizes(), " doesn't match the broadcast shape ", c10::SymIntArrayRef(together));
      for (std::size_t d = 0; d < together.size(); ++d) {
        TORCH_SYM_CHECK(together[d].sym_eq(self.sym_sizes()[d]), call.facts.name, ": output with shape ",
                        self.sym_sizes(), " doesn't match the broadcast shape ", c10::SymIntArrayRef(together));
      }
    });
  }
}

}  // namespace

Outputs infer_in_place(const Call& call) {
  const OperatorFacts& facts = call.facts;
  const Outputs unchanged(facts.returns.size());
  if (facts.returns.empty()) return unchanged;
  if (!has_symbols(call) && facts.has_meta_kernel) {
    if (auto outputs = try_on_meta(call)) return *std::move(outputs);
  }
  const bool is_elementwise = facts.is_pointwise || facts.name == "aten::copy_";
  if (is_elementwise && facts.written.size() == 1) check_broadcast(call);
  return unchanged;
}

}  // namespace rehearse::capture

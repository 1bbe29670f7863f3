// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>

#include "capture/fake/call/results.h"
#include "capture/fake/infer/infer.h"

namespace rehearse::capture {
namespace {

// All operands must broadcast to the operand that the operator writes.
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

bool is_written(const Call& call, const at::Tensor& tensor) {
  const auto& written = call.facts.written;
  return std::any_of(written.begin(), written.end(),
                     [&](std::size_t i) { return call.arguments[i].isTensor() && call.tensor(i).is_same(tensor); });
}

bool same_sizes(const at::Tensor& tensor, const SymInts& sizes) {
  const auto own = tensor.sym_sizes();
  return std::equal(own.begin(), own.end(), sizes.begin(), sizes.end(),
                    [](const c10::SymInt& a, const c10::SymInt& b) { return is_known(a.sym_eq(b)); });
}

// Eager mode resizes `out` to the sizes of the result.
Outputs infer_out(const Call& call) {
  if (!call.facts.is_pointwise || call.facts.written.size() != 1) return infer_by_sampling(call);
  std::vector<at::Tensor> operands;
  for (const c10::IValue& value : call.arguments) {
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (!is_written(call, tensor)) operands.push_back(tensor);
    });
  }
  if (operands.empty()) return Outputs(call.facts.returns.size());
  const at::Tensor& out = call.tensor(call.facts.written.front());
  const Layout layout = pointwise_layout(call, std::move(operands));
  if (same_sizes(out, layout.sizes)) return Outputs(call.facts.returns.size());
  return {view_of(out, layout.sizes, layout.strides)};
}

}  // namespace

Outputs infer_in_place(const Call& call) {
  const OperatorFacts& facts = call.facts;
  Outputs unchanged(facts.returns.size());
  if (facts.returns.empty()) return unchanged;
  if (!has_symbols(call) && facts.has_meta_kernel) {
    if (auto outputs = try_on_meta(call)) return *std::move(outputs);
  }
  if (facts.writes_out) return infer_out(call);
  const bool is_elementwise = facts.is_pointwise || facts.name == "aten::copy_";
  if (is_elementwise && facts.written.size() == 1) check_broadcast(call);
  return unchanged;
}

}  // namespace rehearse::capture

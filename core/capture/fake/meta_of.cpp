// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/fake/fake_impl.h"

namespace rehearse::capture {
namespace {

graph::SymInt graph_int(const c10::SymInt& value) { return shapes::expr_of(value); }

std::vector<graph::SymInt> graph_ints(c10::SymIntArrayRef values) {
  std::vector<graph::SymInt> result;
  result.reserve(values.size());
  for (const c10::SymInt& value : values) result.push_back(graph_int(value));
  return result;
}

}  // namespace

graph::TensorMeta meta_of(const at::Tensor& tensor) {
  const UntrackedRead untracked(tensor);
  return {.sizes = graph_ints(tensor.sym_sizes()),
          .strides = graph_ints(tensor.sym_strides()),
          .storage_offset = graph_int(tensor.sym_storage_offset()),
          .dtype = tensor.scalar_type(),
          .device = tensor.device(),
          .layout = tensor.layout(),
          .requires_grad = tensor.requires_grad(),
          .storage_nbytes = graph_int(tensor.storage().sym_nbytes()),
          .is_conj = tensor.is_conj(),
          .is_neg = tensor.is_neg()};
}

}  // namespace rehearse::capture

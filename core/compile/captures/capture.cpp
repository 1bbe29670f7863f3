// SPDX-License-Identifier: BSD-3-Clause
#include "compile/captures/capture.h"

#include <cstddef>
#include <utility>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "compile/captures/capture_call.h"

namespace rehearse::compiler {

bool same_function(const Capture& a, const Capture& b) {
  const auto hash_of = [](const Capture& capture) {
    return graph::structural_hash(*capture.module, graph::Placeholders::OfAnyForm);
  };
  return a.inputs == b.inputs && a.constants == b.constants && hash_of(a) == hash_of(b);
}

std::vector<LeafShape> shape_of(const CallView& call, const Dynamism& dynamism) {
  std::vector<LeafShape> shape(call.leaves.size());
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    const Leaf& leaf = call.leaves[i];
    const std::string& source = call.sources[i];
    if (leaf.kind == LeafKind::Tensor && capture::kind_without_fakes(*leaf.tensor).empty()) {
      shape[i].sizes = leaf.tensor->sizes().vec();
      for (std::size_t d = 0; d < shape[i].sizes.size(); ++d) {
        shape[i].varies.push_back(dynamism.is_dynamic_size(source, d));
      }
    } else if (leaf.kind == LeafKind::SymInt && dynamism.is_dynamic_int(source)) {
      shape[i].symbolic_int = leaf.sym_int->as_int_unchecked();
    }
  }
  return shape;
}

std::vector<LeafShape> with_sizes_of(std::vector<LeafShape> shape, const LeafList& leaves) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (leaves[i].kind == LeafKind::Tensor) shape[i].sizes = leaves[i].tensor->sizes().vec();
    if (shape[i].symbolic_int) shape[i].symbolic_int = leaves[i].sym_int->as_int_unchecked();
  }
  return shape;
}

}  // namespace rehearse::compiler

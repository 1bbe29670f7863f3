// SPDX-License-Identifier: BSD-3-Clause
#include "compile/arguments/marks.h"

#include <stdexcept>

#include <fmt/format.h>

#include <rehearse/compile/mark_dynamic.h>
#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::compiler {
namespace {

struct MarkedTensor {
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
  Mark mark;
};
const exec::FiberLocal<std::vector<MarkedTensor>> marked_tensors;

void add_mark(const at::Tensor& tensor, std::int64_t dimension, bool dynamic) {
  const std::int64_t dimensions = tensor.dim();
  const std::int64_t counted = dimension < 0 ? dimension + dimensions : dimension;
  if (counted < 0 || counted >= dimensions) {
    throw std::out_of_range(fmt::format("{}: dimension {} of a tensor with {}",
                                        dynamic ? "mark_dynamic" : "mark_static", dimension, dimensions));
  }
  std::vector<MarkedTensor>& marked = marked_tensors.get();
  std::erase_if(marked, [](const MarkedTensor& each) { return each.tensor.expired(); });
  marked.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()),
                    {static_cast<std::size_t>(counted), dynamic}});
}

}  // namespace

std::vector<Mark> marks_of(const at::Tensor& tensor) {
  std::vector<Mark> marks;
  const std::vector<MarkedTensor>* marked = marked_tensors.find();
  if (!marked) return marks;
  for (const MarkedTensor& each : *marked) {
    if (each.tensor._unsafe_get_target() == tensor.unsafeGetTensorImpl()) marks.push_back(each.mark);
  }
  return marks;
}

void absorb_marks(const LeafList& leaves, const std::vector<std::string>& sources, Dynamism& dynamism) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].kind != LeafKind::Tensor) continue;
    const at::Tensor& tensor = *leaves[i].tensor;
    for (const Mark& mark : marks_of(tensor)) {
      if (mark.dynamic) {
        dynamism.mark_dynamic(sources[i], mark.dimension, tensor.sizes().size());
      } else {
        dynamism.mark_static(sources[i], mark.dimension);
      }
    }
  }
}

}  // namespace rehearse::compiler

namespace rehearse {

void mark_dynamic(const at::Tensor& tensor, std::int64_t dimension) { compiler::add_mark(tensor, dimension, true); }
void mark_static(const at::Tensor& tensor, std::int64_t dimension) { compiler::add_mark(tensor, dimension, false); }

}  // namespace rehearse

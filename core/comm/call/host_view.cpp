// SPDX-License-Identifier: BSD-3-Clause
#include "host_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <c10/core/TensorImpl.h>

namespace rehearse::comm {
namespace {

// Of a view: the tensor whose memory it shows.
struct Viewed final : c10::BackendMeta {
  explicit Viewed(at::Tensor of) : tensor(std::move(of)) {}
  c10::intrusive_ptr<c10::BackendMeta> clone(const c10::intrusive_ptr<c10::BackendMeta>& /*meta*/) const override {
    return nullptr;
  }

  const at::Tensor tensor;
};

void (*g_note)(c10::Device device) = nullptr;

bool is_private(const at::Tensor& tensor) noexcept { return tensor.device().is_privateuseone(); }

at::Tensor view_of(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided,
                              "rehearse --cuda=device: a collective on a tensor that is ", tensor.layout(),
                              "; run with --cuda");
  const auto options = tensor.options().device(c10::kCPU);
  auto view = at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), [tensor](void*) {}, options);
  view.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<Viewed>(tensor));
  return view;
}

}  // namespace

bool is_on_private_device(const Operation& call) {
  return std::ranges::any_of(call.inputs, is_private) || std::ranges::any_of(call.outputs, is_private) ||
         std::ranges::any_of(call.parts, is_on_private_device);
}

void run_on_host(Operation& call) {
  std::vector<std::pair<at::Tensor, at::Tensor>> views;  // of one tensor there is one
  const auto replace = [&](at::Tensor& tensor) {
    if (!is_private(tensor)) return;
    if (g_note != nullptr && views.empty()) g_note(tensor.device());
    auto known = std::ranges::find_if(views, [&](const auto& each) { return each.first.is_same(tensor); });
    if (known == views.end()) known = views.emplace(known, tensor, view_of(tensor));
    tensor = known->second;
  };
  for (auto& tensor : call.inputs) replace(tensor);
  for (auto& tensor : call.outputs) replace(tensor);
  for (auto& part : call.parts) run_on_host(part);
}

void observe_private_devices(void (*note)(c10::Device device)) { g_note = note; }

std::vector<at::Tensor> of_caller(const TensorList& tensors) {
  std::vector<at::Tensor> result(tensors.begin(), tensors.end());
  for (auto& tensor : result) {
    const auto* const viewed = dynamic_cast<const Viewed*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
    if (viewed != nullptr) tensor = viewed->tensor;
  }
  return result;
}

}  // namespace rehearse::comm

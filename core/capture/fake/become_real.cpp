// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/become_real.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/libtorch/nodes.h>

#include "capture/fake/fake_impl.h"

namespace rehearse::capture {
namespace {

namespace autograd = torch::autograd;
using autograd::ViewInfo;

ViewInfo copy_of(const ViewInfo& view, const HandleOf& handle_of) {
  return {handle_of(view.base_), view.has_view_fn() ? view.view_fn_->clone_and_set() : nullptr, view.rev_view_fn_};
}

std::unique_ptr<autograd::AutogradMeta> view_meta_of(const autograd::DifferentiableViewMeta& view,
                                                     c10::TensorImpl& owner, const HandleOf& handle_of) {
  std::optional<ViewInfo> backward, forward;
  if (view.has_bw_view()) backward = copy_of(view.get_backward_view(), handle_of);
  if (!view.shared_view_info() && view.has_fw_view()) forward = copy_of(view.get_forward_view(), handle_of);
  auto made = std::make_unique<autograd::DifferentiableViewMeta>(&owner, std::move(backward), std::move(forward),
                                                                 view.shared_view_info(), view.get_creation_meta());
  if (view.has_bw_view()) made->set_attr_version(view.get_attr_version());
  return made;
}

// grad_fn() recomputes the autograd node of a view whose base has changed. It throws for views that must not be
// changed, such as the results of unbind().
void renew_step(const at::Tensor& tensor) {
  try {
    static_cast<void>(tensor.grad_fn());
  } catch (const c10::Error&) {  // the user gets it when he uses the view
  }
}

// A copy, for the tensor `owner`, of the autograd metadata of `real`. Null if `real` has none.
std::unique_ptr<autograd::AutogradMeta> meta_of_real(const at::Tensor& real, c10::TensorImpl& owner,
                                                     const HandleOf& handle_of) {
  const autograd::AutogradMeta* const meta = autograd::impl::get_autograd_meta(real);
  if (meta == nullptr) return nullptr;
  const autograd::DifferentiableViewMeta* const view = autograd::impl::get_view_autograd_meta(real);
  auto made = view ? view_meta_of(*view, owner, handle_of) : std::make_unique<autograd::AutogradMeta>();
  made->grad_fn_ = meta->grad_fn_;
  made->output_nr_ = meta->output_nr_;
  made->requires_grad_ = meta->requires_grad_;
  return made;
}

void take_gradients(const at::Tensor& fake, const at::Tensor& real) {
  const auto accumulator = autograd::impl::try_get_grad_accumulator(real);
  if (!accumulator) return;
  static_cast<autograd::AccumulateGrad&>(*accumulator).variable = fake;
  autograd::impl::set_grad_accumulator(fake, libtorch::WeakNodePtr(accumulator));
}

// Autograd metadata for a second tensor object of a leaf: gradients accumulate in the leaf itself.
class LeafMeta final : public autograd::AutogradMeta {
 public:
  LeafMeta(c10::TensorImpl& owner, at::Tensor leaf)
      : AutogradMeta(&owner, true), leaf_(std::move(leaf)), accumulator_(autograd::impl::grad_accumulator(leaf_)) {
    grad_accumulator_ = libtorch::WeakNodePtr(accumulator_);
  }

  bool requires_grad() const override { return leaf_.requires_grad(); }
  autograd::Variable& mutable_grad() override { return leaf_.mutable_grad(); }
  const autograd::Variable& grad() const override { return leaf_.grad(); }

 private:
  at::Tensor leaf_;
  libtorch::NodePtr accumulator_;
};

void become(const at::Tensor& fake, const at::Tensor& real, const HandleOf& handle_of) {
  FakeImpl& impl = *fake_impl(fake);
  impl.become(*real.unsafeGetTensorImpl());
  impl.set_autograd_meta(meta_of_real(real, impl, handle_of));
}

}  // namespace

void become_real(const at::Tensor& fake, const at::Tensor& real, const HandleOf& handle_of) {
  become(fake, real, handle_of);
  take_gradients(fake, real);
}

at::Tensor view_of_handles(const at::Tensor& view, const HandleOf& handle_of) {
  const autograd::DifferentiableViewMeta* const meta = autograd::impl::get_view_autograd_meta(view);
  if (meta == nullptr || !meta->has_bw_view()) return view;
  const at::Tensor& base = meta->get_backward_view().base_;
  if (handle_of(base).is_same(base)) return view;
  c10::TensorImpl& impl = *view.unsafeGetTensorImpl();
  at::Tensor made(impl.shallow_copy_and_detach(impl.version_counter(), /*allow_tensor_metadata_change=*/true));
  made.unsafeGetTensorImpl()->set_autograd_meta(meta_of_real(view, *made.unsafeGetTensorImpl(), handle_of));
  return made;
}

void share_real(const at::Tensor& fake, const at::Tensor& real) {
  FakeImpl& impl = *fake_impl(fake);
  become(fake, real, [](const at::Tensor& base) { return base; });
  if (real.is_leaf() && real.requires_grad()) impl.set_autograd_meta(std::make_unique<LeafMeta>(impl, real));
}

void take_history(const at::Tensor& fake) {
  if (!fake.requires_grad()) return;
  autograd::AutogradMeta& meta = *autograd::impl::materialize_autograd_meta(fake);
  meta.requires_grad_ = false;
  meta.grad_fn_.reset();
}

libtorch::NodePtr lend_history(const at::Tensor& fake, const at::Tensor& real) {
  if (!real.requires_grad()) return nullptr;
  autograd::AutogradMeta& meta = *autograd::impl::materialize_autograd_meta(fake);
  if (!real.is_leaf()) {
    meta.requires_grad_ = false;
    renew_step(real);
    const autograd::AutogradMeta& of_real = *autograd::impl::get_autograd_meta(real);
    meta.grad_fn_ = of_real.grad_fn_;
    meta.output_nr_ = of_real.output_nr_;
    return nullptr;
  }
  const auto accumulator = autograd::impl::grad_accumulator(real);
  meta.grad_accumulator_ = libtorch::WeakNodePtr(accumulator);
  return accumulator;
}

}  // namespace rehearse::capture

// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/sharded_parameter.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <rehearse_internal/operators/guarded_storages.h>
#include <torch/csrc/autograd/variable.h>

#include "parallel/fsdp/freed_storage.h"

namespace rehearse::parallel {
ShardLayout::ShardLayout(at::IntArrayRef sizes, int ranks)
    : sizes_(sizes.vec()),
      ranks_(ranks),
      row_elements_(c10::multiply_integers(sizes.slice(1))),
      chunk_((sizes[0] + ranks - 1) / ranks) {}

std::int64_t ShardLayout::first_row(int rank) const { return std::min(rank * chunk_, sizes_[0]); }

std::int64_t ShardLayout::rows_of(int rank) const { return first_row(rank + 1) - first_row(rank); }

std::vector<std::int64_t> ShardLayout::shard_sizes(int rank) const {
  auto sizes = sizes_;
  sizes[0] = rows_of(rank);
  return sizes;
}

template <class Copy>
void ShardLayout::for_each_part(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole,
                                Copy&& copy) const {
  if (whole.numel() == 0) return;
  const std::int64_t elements = padded_elements();
  const std::int64_t full = sizes_[0] / chunk_;  // number of ranks with `chunk` rows
  const at::Tensor flat = whole.view(-1);
  const at::Tensor of_ranks = buffer.narrow(1, offset, elements);
  if (full > 0) copy(flat.narrow(0, 0, full * elements).view({full, elements}), of_ranks.narrow(0, 0, full));
  if (const std::int64_t rest = flat.size(0) - full * elements; rest > 0) {
    copy(flat.narrow(0, full * elements, rest), of_ranks.select(0, full).narrow(0, 0, rest));
  }
}

void ShardLayout::copy_out(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const {
  for_each_part(buffer, offset, whole, [](const at::Tensor& to, const at::Tensor& from) { to.copy_(from); });
}

void ShardLayout::copy_in(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const {
  for_each_part(buffer, offset, whole, [](const at::Tensor& from, const at::Tensor& to) { to.copy_(from); });
}

namespace {

std::string refusal(const std::string& what, const std::string& name, const std::string& unit) {
  return fmt::format(
      "FSDP: {} parameter \"{}\" of {}{}: it is sharded. Operators find them in forward() and backward(), in the "
      "thread "
      "that made the model. fsdp.parameters() are this rank's shards, for optimizers; full_state_dict() gathers the "
      "whole",
      what, name, unit, operators::kElementsNotHere);
}

std::string refusal_of_orphan(const std::string& what, const std::string& name, const std::string& unit) {
  return fmt::format(
      "FSDP: {} parameter \"{}\" of {}{}: the FullyShardedDataParallel that sharded it is gone. Keep it for as long as "
      "the module is used, or load its full_state_dict() into another module before",
      what, name, unit, operators::kElementsNotHere);
}

at::Tensor shard_of(const at::Tensor& whole, const ShardLayout& layout, int rank) {
  return whole.narrow(0, layout.first_row(rank), layout.rows_of(rank)).clone();
}

// A tensor with the sizes and the device of `like`, but without memory.
at::Tensor without_memory(const at::Tensor& like, at::ScalarType dtype) {
  at::Tensor made = at::empty({0}, like.options().dtype(dtype).requires_grad(false));
  made.unsafeGetTensorImpl()->set_sizes_contiguous(like.sizes());
  return made;
}

}  // namespace

ShardedParameter::ShardedParameter(NamedParameter parameter, const std::string& unit, int rank, int ranks,
                                   std::optional<at::ScalarType> dtype)
    : names_(std::move(parameter.names)),
      tensor_(std::move(parameter.tensor)),
      trained_(tensor_.requires_grad()),
      has_values_(parameter.has_values),
      layout_(tensor_.sizes(), ranks) {
  const at::NoGradGuard no_grad;
  shard_ = parameter.is_made ? std::move(parameter.rows) : shard_of(tensor_.detach(), layout_, rank);
  shard_.requires_grad_(trained_);
  if (dtype && *dtype != tensor_.scalar_type()) {
    replaced_ = tensor_.variable_data();
    tensor_.set_data(without_memory(replaced_, *dtype));
    refuse_when_freed(replaced_, refusal("a view made earlier of", name(), unit));
    free_storage(replaced_);
  }
  whole_ = tensor_.variable_data();
  mark_ = without_memory(tensor_, tensor_.scalar_type());
  refuse_when_freed(tensor_, refusal("the", name(), unit));
  refuse_when_freed(mark_, refusal("the gradient of", name(), unit));
  free_storage(tensor_);
  free_storage(mark_);
  if (!torch::autograd::isDifferentiableType(tensor_.scalar_type())) return;
  tensor_.set_requires_grad(true);
  accumulator_ = torch::autograd::impl::grad_accumulator(tensor_);
  tensor_.set_requires_grad(trained_);
  if (trained_) take_gradient();
}

void ShardedParameter::require_values(const std::string& unit, const char* call) const {
  TORCH_CHECK(
      has_values_, "FSDP: ", call, " needs parameter \"", name(), "\" of ", unit,
      ", which was made on the meta device and has no values yet. Load a state dict first, or give from_meta.fill");
}

void ShardedParameter::fill() { fill_storage(whole_, whole_.nbytes()); }

void ShardedParameter::free() { free_storage(whole_); }

void ShardedParameter::require_filled(const std::string& unit) const {
  TORCH_CHECK(whole_.storage().nbytes() == whole_.nbytes(), "FSDP: somebody has resized the storage of parameter \"",
              name(), "\" of ", unit, " to ", whole_.storage().nbytes(), " bytes, while its ", whole_.nbytes(),
              " are in use. Leave filling and freeing of the memory to FullyShardedDataParallel");
}

void ShardedParameter::leave(const std::string& unit) {
  refuse_for_good(whole_, refusal_of_orphan("the", name(), unit));
  refuse_for_good(mark_, refusal_of_orphan("the gradient of", name(), unit));
  if (replaced_.defined()) refuse_for_good(replaced_, refusal_of_orphan("a view made earlier of", name(), unit));
}

at::Tensor ShardedParameter::gradient() const {
  const at::Tensor& gradient = tensor_.grad();
  return gradient.is_same(mark_) || !gradient.defined() ? kept_ : gradient;
}

at::Tensor ShardedParameter::take_gradient() {
  at::Tensor taken = gradient();
  tensor_.mutable_grad() = mark_;
  const at::Tensor kept = std::exchange(kept_, {});
  return !kept.defined() || taken.is_same(kept) ? taken : kept.add_(taken);
}

void ShardedParameter::keep_gradient(at::ScalarType dtype) {
  const at::Tensor& own = gradient();
  if (own.defined() && own.scalar_type() != dtype) kept_ = take_gradient().to(dtype);
}

void ShardedParameter::clear_mark() {
  if (tensor_.grad().is_same(mark_)) tensor_.mutable_grad().reset();
}

void ShardedParameter::add_to_shard(const at::Tensor& gradient) const {
  const at::Tensor own = gradient.to(shard_.scalar_type());
  at::Tensor& sum = shard_.mutable_grad();
  if (sum.defined()) {
    sum.add_(own);
  } else {
    sum = own.variable_data();  // no view: Optimizer::zero_grad() calls detach_(), which refuses views
  }
}

void ShardedParameter::require_unchanged(const std::string& unit) const {
  const bool same_memory =
      tensor_.has_storage() &&
      tensor_.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() == whole_.storage().unsafeGetStorageImpl();
  TORCH_CHECK(same_memory && tensor_.sizes() == whole_.sizes(), "FSDP: somebody has given parameter \"", name(),
              "\" of ", unit,
              " other elements since it was sharded, and they would never be trained. Change the module before "
              "FullyShardedDataParallel is made, or load a state dict into that");
}

bool ShardedParameter::follow_requires_grad() {
  if (tensor_.requires_grad() == trained_ && shard_.requires_grad() == trained_) return false;
  trained_ = !trained_;
  tensor_.set_requires_grad(trained_);
  shard_.set_requires_grad(trained_);
  if (!trained_) clear_mark();
  if (trained_ && !tensor_.grad().defined()) tensor_.mutable_grad() = mark_;
  return true;
}

}  // namespace rehearse::parallel

// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/model/bucket_names.h"

#include <unordered_map>

#include <fmt/format.h>

#include <rehearse_internal/comm/described_backend.h>

#include "parallel/model/reducer_buckets.h"

namespace rehearse::parallel {
namespace {

comm::DescribedBackend& described(c10d::Backend& backend) { return static_cast<comm::DescribedBackend&>(backend); }

}  // namespace

BucketNames::BucketNames(const c10d::ProcessGroup& group) {
  auto backend = group.getDefaultBackend();
  if (dynamic_cast<comm::DescribedBackend*>(backend.get()) == nullptr) return;
  backend_ = std::move(backend);
  model_ = described(*backend_).count_model();
}

void BucketNames::set(const c10d::Reducer& reducer, const ReducedParameters& parameters) {
  forget();
  if (backend_ == nullptr) return;
  std::unordered_map<const c10::TensorImpl*, const std::string*> name_of;
  for (std::size_t i = 0; i < parameters.names.size(); ++i) {
    name_of.emplace(parameters.tensors[i].unsafeGetTensorImpl(), &parameters.names[i]);
  }
  const auto model = model_ == 1 ? "DDP" : fmt::format("DDP #{}", model_);
  const auto buckets = buckets_of(reducer);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto& buffer = buckets[i].buffer;
    if (!buffer.defined()) continue;
    std::string text = fmt::format("{} bucket {} of {}: ", model, i, buckets.size());
    const char* between = "";
    for (const auto& tensor : buckets[i].parameters) {
      text += between + *name_of.at(tensor.unsafeGetTensorImpl());
      between = ", ";
    }
    described(*backend_).name_payload(buffer, text);
    named_.push_back(buffer.unsafeGetTensorImpl());
  }
}

std::string BucketNames::model_text() const {
  return fmt::format("DDP #{} on group \"{}\"", model_, described(*backend_).identity().name);
}

void BucketNames::forget() noexcept {
  if (backend_ == nullptr) return;
  for (const auto* const tensor : named_) described(*backend_).forget_payload(tensor);
  named_.clear();
}

}  // namespace rehearse::parallel

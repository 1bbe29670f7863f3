// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/sampled_operators.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include <c10/util/Exception.h>

namespace rehearse::capture {
namespace {

// Sorted. Written by `operator_table --write-sampled`.
constexpr std::string_view kSampled[] = {
#include "capture/fake/infer/sampled_operators.inc"
};

AllMayBeSampled* all = nullptr;

}  // namespace

AllMayBeSampled::AllMayBeSampled() {
  TORCH_CHECK(all == nullptr, "another AllMayBeSampled lives");
  all = this;
}

AllMayBeSampled::~AllMayBeSampled() { all = nullptr; }

bool may_be_sampled(const std::string& operator_name) {
  if (all != nullptr) all->seen_.insert(operator_name);
  return all != nullptr || std::binary_search(std::begin(kSampled), std::end(kSampled), operator_name);
}

}  // namespace rehearse::capture

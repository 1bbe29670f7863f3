// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/checks/non_finite.h>

#include <cstdint>
#include <cstring>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/view_as_real.h>
#include <fmt/format.h>

#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

// The elements of `tensor` must fill one block of memory. Works on the bits of the numbers: if all bits of an exponent
// are ones, adding its lowest bit carries into the bit above.
template <class Bits>
bool any_full_exponent(const at::Tensor& tensor, Bits exponent) {
  constexpr int kBytes = 32;
  typedef Bits Lanes __attribute__((vector_size(kBytes)));
  constexpr std::int64_t kLanes = kBytes / sizeof(Bits), kChains = 4;  // the chains are independent of each other
  const auto* const data = static_cast<const Bits*>(tensor.const_data_ptr());
  const auto lowest = static_cast<Bits>(exponent & (~exponent + 1));
  const auto top = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  Lanes seen[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= tensor.numel(); i += kChains * kLanes) {
    for (std::int64_t chain = 0; chain < kChains; ++chain) {
      Lanes lanes;
      std::memcpy(&lanes, data + i + chain * kLanes, kBytes);
      seen[chain] |= (lanes & exponent) + lowest;
    }
  }
  Bits any = 0;
  for (; i < tensor.numel(); ++i) any = static_cast<Bits>(any | ((data[i] & exponent) + lowest));
  for (const Lanes& chain : seen) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) any = static_cast<Bits>(any | chain[lane]);
  }
  return (any & top) != 0;
}

at::Tensor values_of(const at::Tensor& tensor) {
  const auto values = plain(tensor);
  if (values.is_complex()) return at::view_as_real(values);
  return values.element_size() == 1 ? values.to(at::kFloat) : values;
}

at::Tensor nan_mask(const at::Tensor& values) { return at::isnan(values).flatten(); }

std::string mask_text(const std::string& kind, const at::Tensor& values, const at::Tensor& mask) {
  const auto first = mask.to(at::kByte).argmax().item<std::int64_t>();
  return fmt::format("{} in {} of {} element{}, first at {}", kind, mask.sum().item<std::int64_t>(), values.numel(),
                     values.numel() == 1 ? "" : "s", position_text(values.sizes(), first));
}

at::Tensor non_finite_mask(const at::Tensor& values) { return at::isfinite(values).logical_not().flatten(); }

}  // namespace

bool has_non_finite(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta() || tensor.is_quantized() || tensor.numel() == 0) return false;
  if (!at::isFloatingType(tensor.scalar_type()) && !tensor.is_complex()) return false;
  if (tensor.layout() == c10::kStrided && tensor.is_cpu() && tensor.is_non_overlapping_and_dense()) {
    switch (tensor.scalar_type()) {
      case at::kFloat:
        return any_full_exponent<std::uint32_t>(tensor, 0x7F80'0000u);
      case at::kDouble:
        return any_full_exponent<std::uint64_t>(tensor, 0x7FF0'0000'0000'0000u);
      case at::kHalf:
        return any_full_exponent<std::uint16_t>(tensor, 0x7C00u);
      case at::kBFloat16:
        return any_full_exponent<std::uint16_t>(tensor, 0x7F80u);
      default:
        break;
    }
  }
  return non_finite_mask(values_of(tensor)).any().item<bool>();
}

std::string non_finite_kind(const at::Tensor& tensor) {
  const auto values = values_of(tensor).flatten();
  const auto first = non_finite_mask(values).to(at::kByte).argmax().item<std::int64_t>();
  return at::isnan(values[first]).item<bool>() ? "NaN" : "Inf";
}

std::string non_finite_text(const at::Tensor& tensor) {
  const auto values = values_of(tensor);
  const auto mask = non_finite_mask(values);
  const auto nans = nan_mask(values).sum().item<std::int64_t>();
  const bool is_mixed = nans != 0 && nans != mask.sum().item<std::int64_t>();
  return mask_text(is_mixed ? "NaN and Inf" : non_finite_kind(tensor), values, mask);
}

bool has_nan(const at::Tensor& tensor) {
  return has_non_finite(tensor) && nan_mask(values_of(tensor)).any().item<bool>();
}

std::string nan_text(const at::Tensor& tensor) {
  const auto values = values_of(tensor);
  return mask_text("NaN", values, nan_mask(values));
}

}  // namespace rehearse::checks

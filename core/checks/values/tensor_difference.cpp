// SPDX-License-Identifier: BSD-3-Clause
#include "checks/values/tensor_difference.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <ATen/ops/isnan.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/hash/fnv1a.h>

namespace rehearse::checks {
namespace {

std::string sizes_text(at::IntArrayRef sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

std::string kind_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return fmt::format("{} of {}", c10::toString(tensor.scalar_type()), sizes_text(tensor.sizes()));
}

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
}

// A mask of the elements that differ as numbers.
at::Tensor unequal(const at::Tensor& a, const at::Tensor& b) {
  auto differ = a.ne(b);
  if (!at::isFloatingType(a.scalar_type())) return differ;
  return differ.logical_and(at::isnan(a).logical_and(at::isnan(b)).logical_not());
}

at::Tensor as_numbers(const at::Tensor& tensor) {
  if (tensor.is_complex()) return at::view_as_real(tensor);
  // Few operators support the shortest types.
  return at::isFloatingType(tensor.scalar_type()) && tensor.element_size() == 1 ? tensor.to(at::kFloat) : tensor;
}

}  // namespace

at::Tensor plain(const at::Tensor& tensor) {
  auto values = tensor.detach();
  if (values.layout() != c10::kStrided) values = values.to_dense();
  if (values.is_quantized()) values = values.dequantize();
  if (values.device().is_privateuseone()) values = values.cpu();  // ranks' devices differ (Python's --cuda=device)
  return values.resolve_conj().resolve_neg().contiguous();
}

at::Tensor wide(const at::Tensor& tensor) {
  return plain(tensor).to(tensor.is_complex() ? at::kComplexDouble : at::kDouble);
}

at::Tensor copied(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const bool as_it_is = tensor.is_quantized() || tensor.layout() != c10::kStrided;
  return (as_it_is ? tensor.detach() : plain(tensor)).clone();
}

std::uint64_t hash_of(const at::Tensor& tensor) {
  const auto values = plain(tensor).cpu();
  return fnv1a({static_cast<const char*>(values.const_data_ptr()), values.nbytes()});
}

bool same_values(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (!same_kind(a, b)) return false;
  if (a.is_meta() || b.is_meta()) return a.is_meta() == b.is_meta();
  const auto x = plain(a), y = plain(b);
  if (x.numel() == 0) return true;
  if (x.is_cpu() && y.is_cpu() && std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0) return true;
  return !unequal(as_numbers(x), as_numbers(y)).any().item<bool>();
}

std::string difference_text(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined() || !same_kind(a, b)) return fmt::format("{}, not {}", kind_text(a), kind_text(b));
  if (a.is_meta() || b.is_meta()) return "one is without data";
  const auto x = as_numbers(plain(a)), y = as_numbers(plain(b));
  const auto differ = unequal(x, y);
  const auto count = differ.sum().item<std::int64_t>();
  const auto of = fmt::format("{} of {} element{}", count, x.numel(), x.numel() == 1 ? "" : "s");
  const auto p = x.to(at::kDouble), q = y.to(at::kDouble);
  // The distance of NaN or Inf from a number counts as larger than the distance of any two numbers.
  const auto apart = at::where(differ, (p - q).abs().nan_to_num(INFINITY, INFINITY), at::zeros_like(p));
  const auto flat = apart.argmax().item<std::int64_t>();
  const auto largest = apart.flatten()[flat].item<double>();
  const auto values = fmt::format("{}: {:.6g}, not {:.6g}", position_text(x.sizes(), flat),
                                  p.flatten()[flat].item<double>(), q.flatten()[flat].item<double>());
  if (std::isinf(largest)) return fmt::format("{}, at {}", of, values);
  return fmt::format("{}, by up to {:.6g} at {}", of, largest, values);
}

std::string position_text(at::IntArrayRef sizes, std::int64_t flat) {
  std::vector<std::int64_t> index(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0; flat /= sizes[i]) index[i] = flat % sizes[i];
  return sizes_text(index);
}

}  // namespace rehearse::checks

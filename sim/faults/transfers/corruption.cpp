// SPDX-License-Identifier: BSD-3-Clause
#include "corruption.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace rehearse::sim {
namespace {

bool is_corruptible(const at::Tensor& output) {
  return output.defined() && output.layout() == c10::kStrided && output.numel() > 0;
}

const at::Tensor* first_output(const comm::Operation& call) {
  const auto found = std::ranges::find_if(call.outputs, is_corruptible);
  return found == call.outputs.end() ? nullptr : &*found;
}

// The address of an element by its logical, row-major index.
std::uint8_t* address_of(const at::Tensor& tensor, std::int64_t element) {
  std::int64_t offset = 0;
  for (auto dimension = tensor.dim(); dimension-- > 0;) {
    const auto size = tensor.size(dimension);
    offset += element % size * tensor.stride(dimension);
    element /= size;
  }
  return static_cast<std::uint8_t*>(tensor.data_ptr()) + offset * static_cast<std::int64_t>(tensor.element_size());
}

// Copies without the dispatcher, which would count the operators as the rank's computation.
std::vector<std::uint8_t> elements_of(const at::Tensor& tensor) {
  std::vector<std::uint8_t> elements;
  if (!is_corruptible(tensor)) return elements;
  const auto size = tensor.element_size();
  elements.resize(static_cast<std::size_t>(tensor.numel()) * size);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::memcpy(&elements[static_cast<std::size_t>(i) * size], address_of(tensor, i), size);
  }
  return elements;
}

void put_back(const at::Tensor& tensor, const std::vector<std::uint8_t>& elements) {
  const auto size = elements.empty() ? 0 : tensor.element_size();
  for (std::size_t at = 0; at < elements.size(); at += size) {
    std::memcpy(address_of(tensor, static_cast<std::int64_t>(at / size)), &elements[at], size);
  }
}

// Writes a NaN if the fault asks for one and the type is float or double. Otherwise flips bit 6 of the highest byte,
// below the sign bit.
void corrupt_element(const at::Tensor& tensor, std::int64_t element, Fault::Corruption with) {
  auto* const bytes = address_of(tensor, element);
  if (with == Fault::Corruption::nan && tensor.scalar_type() == at::kFloat) {
    *reinterpret_cast<float*>(bytes) = std::numeric_limits<float>::quiet_NaN();
  } else if (with == Fault::Corruption::nan && tensor.scalar_type() == at::kDouble) {
    *reinterpret_cast<double*>(bytes) = std::numeric_limits<double>::quiet_NaN();
  } else {
    bytes[tensor.element_size() - 1] ^= 0x40;
  }
}

}  // namespace

std::int64_t corruptible_elements(const comm::Operation& call) {
  const auto* const output = first_output(call);
  return output == nullptr ? 0 : output->numel();
}

bool can_corrupt(const comm::Operation& call, const Fault& fault) {
  return fault.element < static_cast<std::uint64_t>(corruptible_elements(call));
}

Corruption::Corruption(const comm::Operation& call, const Fault& fault) : call_(call), fault_(fault) {
  if (fault.with != Fault::Corruption::stale) return;
  for (const auto& output : call.outputs) before_.push_back(elements_of(output));
}

void Corruption::apply() const {
  if (fault_.with == Fault::Corruption::stale) {
    for (std::size_t i = 0; i < before_.size(); ++i) put_back(call_.outputs[i], before_[i]);
    return;
  }
  const auto* const output = first_output(call_);
  if (output == nullptr) return;
  const auto from = static_cast<std::int64_t>(fault_.element), left = output->numel() - from;
  const auto share = std::ceil(fault_.fraction * static_cast<double>(left));
  const auto count = std::clamp(static_cast<std::int64_t>(share), std::int64_t{1}, left);
  // Spread the elements evenly: element i of `count` lies at the fraction i / count of the `left` elements.
  for (std::int64_t i = 0; i < count; ++i) {
    const auto offset =
        static_cast<std::int64_t>(static_cast<double>(i) / static_cast<double>(count) * static_cast<double>(left));
    corrupt_element(*output, from + offset, fault_.with);
  }
}

}  // namespace rehearse::sim

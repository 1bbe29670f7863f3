// SPDX-License-Identifier: BSD-3-Clause
#include "argument_checks.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/call/fingerprint.h"
#include "comm/call/memory_layout.h"

namespace rehearse::comm {
namespace {

std::string type_text(const at::Tensor& tensor) {
  return fmt::format("{} on {}", dtype_text(tensor.scalar_type()), tensor.device().str());
}

}  // namespace

void ArgumentChecks::fail(const std::string& text) const { TORCH_CHECK(false, "rehearse::", op_, ": ", text); }

void ArgumentChecks::root(std::int64_t root, std::int64_t root_tensor) const {
  if (root < 0 || root >= size_) fail(fmt::format("invalid root rank: {}", root));
  if (root_tensor != 0) fail(fmt::format("invalid root tensor: {}", root_tensor));
}

void ArgumentChecks::defined(const at::Tensor& tensor) const {
  if (!tensor.defined()) fail("a tensor is undefined");
}

void ArgumentChecks::dense(const at::Tensor& tensor) const {
  defined(tensor);
  if (tensor.layout() != at::kStrided) fail("only supports dense tensors");
}

void ArgumentChecks::filled(const at::Tensor& tensor) const {
  if (fills_its_memory(tensor)) return;
  fail(fmt::format("Tensors must be contiguous, or dense in another order of their dimensions; this one has {}",
                   layout_text(tensor)));
}

void ArgumentChecks::contiguous(const at::Tensor& tensor) const {
  if (tensor.is_contiguous()) return;
  fail(fmt::format("input tensor has to be contiguous; this one has {}", layout_text(tensor)));
}

void ArgumentChecks::same_format(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const {
  for (const auto* const each : {&expected, &tensor}) {
    if (comm::same_format(*each, *each)) continue;
    fail(fmt::format("Tensors must be contiguous; this one has {}", layout_text(*each)));
  }
  if (!comm::same_format(expected, tensor)) wrong_layout(expected, tensor, index);
}

void ArgumentChecks::same_layout(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const {
  if (!comm::same_layout(expected, tensor)) wrong_layout(expected, tensor, index);
}

void ArgumentChecks::wrong_layout(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const {
  fail(fmt::format("invalid tensor strides at index {} (expected {}, got {})", index, layout_text(expected),
                   layout_text(tensor)));
}

const at::Tensor& ArgumentChecks::only(const Tensors& tensors, const char* list) const {
  if (tensors.size() != 1) fail(fmt::format("requires a single-element {}", list));
  defined(tensors.front());
  return tensors.front();
}

const at::Tensor& ArgumentChecks::single(const Tensors& tensors, const char* list) const {
  const auto& tensor = only(tensors, list);
  dense(tensor);
  return tensor;
}

auto ArgumentChecks::one_for_each_rank(const std::vector<Tensors>& lists, bool is_output) const -> const Tensors& {
  const char* const what = is_output ? "output" : "input";
  if (lists.size() != 1) {
    fail(fmt::format("requires a single-element {} list containing a list with {} tensors", what, size_));
  }
  const auto& list = lists.front();
  if (list.size() != static_cast<std::size_t>(size_)) {
    fail(fmt::format("Incorrect {} list size {}. {} list size should be {}, same as size of the process group.", what,
                     list.size(), is_output ? "Output" : "Input", size_));
  }
  for (const auto& tensor : list) dense(tensor);
  return list;
}

auto ArgumentChecks::gathered_by_all(const std::vector<Tensors>& outputs) const -> const Tensors& {
  if (outputs.size() == 1 && outputs.front().size() != static_cast<std::size_t>(size_)) {
    fail(fmt::format("invalid output tensor list at index 0 (expected length {}, got {})", size_,
                     outputs.front().size()));
  }
  return one_for_each_rank(outputs, true);
}

void ArgumentChecks::same_type(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const {
  if (tensor.scalar_type() == expected.scalar_type() && tensor.device().type() == expected.device().type()) return;
  fail(fmt::format("invalid tensor type at index {} (expected {}, got {})", index, type_text(expected),
                   type_text(tensor)));
}

void ArgumentChecks::same_type(const at::Tensor& expected, const Tensors& tensors) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) same_type(expected, tensors[i], i);
}

void ArgumentChecks::wrong_size(const at::Tensor& expected, const at::Tensor& tensor, std::size_t index) const {
  fail(fmt::format("invalid tensor size at index {} (expected [{}], got [{}])", index,
                   fmt::join(expected.sizes(), ", "), fmt::join(tensor.sizes(), ", ")));
}

void ArgumentChecks::same_sizes(const at::Tensor& expected, const Tensors& tensors) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].sizes() != expected.sizes()) wrong_size(expected, tensors[i], i);
  }
}

void ArgumentChecks::same_count(const at::Tensor& expected, const at::Tensor& tensor, int index) const {
  if (tensor.numel() != expected.numel()) wrong_size(expected, tensor, static_cast<std::size_t>(index));
}

void ArgumentChecks::base_pair(const at::Tensor& whole, const at::Tensor& part, const char* size_text,
                               const char* type_text) const {
  dense(whole);
  dense(part);
  if (whole.scalar_type() != part.scalar_type() || whole.device().type() != part.device().type()) fail(type_text);
  if (whole.numel() == part.numel() * size_) return;
  fail(fmt::format("{} ({} elements, not {} x {})", size_text, whole.numel(), size_, part.numel()));
}

}  // namespace rehearse::comm

// SPDX-License-Identifier: BSD-3-Clause
#include "coalesced.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include <ATen/EmptyTensor.h>

namespace rehearse::fakes {
namespace {

using comm::Operation;

Extent extent_of(const at::Tensor& tensor) {
  return extent(input_region(tensor), tensor.numel(), tensor.dtype().itemsize());
}

bool has_memory(const at::Tensor& tensor) { return !tensor.is_sparse() && tensor.numel() > 0; }

// The memory that earlier parts write.
class Written {
 public:
  void add(const at::Tensor& tensor) {
    if (!has_memory(tensor)) return;
    auto [begin, end] = extent_of(tensor);
    auto span = first_that_ends_after(begin);
    while (span != spans_.end() && !std::less<>{}(end, span->first)) {
      begin = std::min(begin, span->first, std::less<>{});
      end = std::max(end, span->second, std::less<>{});
      span = spans_.erase(span);
    }
    spans_.emplace(begin, end);
  }

  bool touches(const at::Tensor& tensor) const {
    if (!has_memory(tensor)) return false;
    const auto [begin, end] = extent_of(tensor);
    const auto span = first_that_ends_after(begin);
    return span != spans_.end() && std::less<>{}(span->first, end);
  }

 private:
  using Spans = std::map<const std::byte*, const std::byte*>;  // begin to end; spans do not overlap

  Spans::const_iterator first_that_ends_after(const std::byte* begin) const {
    auto span = spans_.upper_bound(begin);
    if (span != spans_.begin() && std::less<>{}(begin, std::prev(span)->second)) --span;
    return span;
  }

  Spans spans_;
};

// Copies raw memory, because this may run in any rank's context: it must dispatch no operator there.
at::Tensor contiguous_copy_of(const at::Tensor& tensor) {
  at::Tensor copy = at::detail::empty_cpu(tensor.sizes(), tensor.scalar_type());
  auto* const to = static_cast<std::byte*>(copy.unsafeGetTensorImpl()->mutable_data());
  gather(to, input_region(tensor), tensor.numel(), tensor.dtype().itemsize());
  return copy;
}

bool is_in_place(const Operation& part) {
  return part.inputs.size() == 1 && part.outputs.size() == 1 && part.inputs[0].is_same(part.outputs[0]);
}

// True if a call that works in place leaves a result in this rank's tensor.
bool is_written(const Operation& part, std::size_t rank) {
  const bool is_root = part.root == static_cast<int>(rank);
  if (part.type == c10d::OpType::BROADCAST) return !is_root;
  return part.type != c10d::OpType::REDUCE || is_root;
}

// A part of a rank's call, with copies in place of the inputs that earlier parts overwrite.
struct StandIn {
  std::size_t part;
  std::size_t rank;
  Operation call;
};

void add_stand_ins(const Operation& call, std::size_t rank, std::vector<StandIn>& stand_ins) {
  Written written;
  for (std::size_t i = 0; i < call.parts.size(); ++i) {
    const Operation& part = call.parts[i];
    const auto touched = [&written](const at::Tensor& tensor) { return written.touches(tensor); };
    if (std::any_of(part.inputs.begin(), part.inputs.end(), touched)) {
      StandIn& stand_in = stand_ins.emplace_back(StandIn{i, rank, part});
      for (at::Tensor& input : stand_in.call.inputs) {
        if (touched(input)) input = contiguous_copy_of(input);
      }
      if (is_in_place(part)) stand_in.call.outputs[0] = stand_in.call.inputs[0];
    }
    for (const at::Tensor& output : part.outputs) written.add(output);
  }
}

void write_back(const StandIn& stand_in, const Operation& part) {
  if (!is_in_place(part) || !is_written(part, stand_in.rank)) return;
  const at::Tensor& result = stand_in.call.outputs[0];
  if (result.numel() == 0) return;
  const auto* const from = static_cast<const std::byte*>(result.unsafeGetTensorImpl()->data());
  store(output_region(part.outputs[0]), from, result.numel(), result.dtype().itemsize());
}

std::int64_t elements_of(const Operation& call) {
  std::int64_t elements = 0;
  for (const at::Tensor& input : call.inputs) {
    if (!input.is_sparse()) elements += input.numel();
  }
  return elements;
}

}  // namespace

void move_parts(const comm::Transfer& transfer, Workspace& workspace) {
  std::vector<StandIn> stand_ins;
  for (std::size_t r = 0; r < transfer.calls.size(); ++r) add_stand_ins(*transfer.calls[r], r, stand_ins);
  workspace.other_parts = {0, elements_of(*transfer.calls.front())};
  comm::for_each_part(transfer, [&](std::size_t i, const comm::Transfer& part, std::span<Operation*> calls) {
    for (StandIn& stand_in : stand_ins) {
      if (stand_in.part == i) calls[stand_in.rank] = &stand_in.call;
    }
    const std::int64_t elements = elements_of(*calls.front());
    workspace.other_parts.after -= elements;
    move_call(part, workspace);
    workspace.other_parts.before += elements;
    for (const StandIn& stand_in : stand_ins) {
      if (stand_in.part == i) write_back(stand_in, transfer.calls[stand_in.rank]->parts[i]);
    }
  });
}

}  // namespace rehearse::fakes

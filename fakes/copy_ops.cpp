// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>

#include <rehearse_internal/exec/check.h>

#include "workspace.h"

namespace rehearse::fakes {
namespace {

using comm::Operation;

std::size_t bytes_of(const at::Tensor& tensor) { return tensor.dtype().itemsize(); }

// Copies `from` to each of `to`, block by block, so that the source is read from memory once.
void fan_out(const Region& from, std::span<const Region> to, std::int64_t count, std::size_t element_bytes,
             Workspace& workspace) {
  const auto block = static_cast<std::int64_t>(kBlockBytesMax / element_bytes);
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t length = std::min(block, count - first);
    const Region region = advanced(from, first);
    const std::byte* source = nullptr;
    if (is_contiguous(region)) {
      source = address(region, element_bytes);
    } else {
      gather(workspace.gathered[0].bytes, region, length, element_bytes);
      source = workspace.gathered[0].bytes;
    }
    for (const Region& each : to) store(advanced(each, first), source, length, element_bytes);
  }
}

void copy(const Region& from, const Region& to, std::int64_t count, std::size_t element_bytes, Workspace& workspace) {
  if (is_contiguous(from) && count > 0) return store(to, address(from, element_bytes), count, element_bytes);
  if (is_contiguous(to)) return gather(address(to, element_bytes), from, count, element_bytes);
  fan_out(from, {&to, 1}, count, element_bytes, workspace);
}

void broadcast(Calls calls, Workspace& workspace) {
  const auto root = static_cast<std::size_t>(calls[0]->root);
  const at::Tensor& source = calls[root]->inputs[0];
  const bool dense = all_dense_alike(calls, [](const Operation& call) -> const at::Tensor& { return call.inputs[0]; });
  for (std::size_t r = 0; r < calls.size(); ++r) {
    if (r == root) continue;
    Region output = output_region(calls[r]->outputs[0]);
    if (dense) output.layout = nullptr;
    workspace.outputs.push_back(output);
  }
  Region input = input_region(source);
  if (dense) input.layout = nullptr;
  fan_out(input, workspace.outputs, source.numel(), bytes_of(source), workspace);
}

// If a rank's input overlaps the rank's outputs, a write could change the input before it is read, so the input is
// copied first. An input that is exactly the rank's own place in the output needs no copy.
void allgather(Calls calls, Workspace& workspace) {
  const std::size_t n = calls.size();
  const std::size_t bytes = bytes_of(calls[0]->inputs[0]);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t count = calls[i]->inputs[0].numel();
    Region input = input_region(calls[i]->inputs[0]);
    if (!same_elements(input, output_region(calls[i]->outputs[i]), bytes)) {
      const bool shared = std::ranges::any_of(calls[i]->outputs, [&](const at::Tensor& each) {
        return may_overlap(input, count, output_region(each), each.numel(), bytes);
      });
      if (shared) input = workspace.copy_of(input, count, bytes);
    }
    workspace.inputs.push_back(input);
  }
  workspace.outputs.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < n; ++r) workspace.outputs[r] = output_region(calls[r]->outputs[i]);
    fan_out(workspace.inputs[i], workspace.outputs, calls[i]->inputs[0].numel(), bytes, workspace);
  }
}

void allgather_base(Calls calls, Workspace& workspace) {
  const auto n = static_cast<std::int64_t>(calls.size());
  const std::int64_t count = calls[0]->inputs[0].numel();
  const std::size_t bytes = bytes_of(calls[0]->inputs[0]);
  for (std::int64_t r = 0; r < n; ++r) {
    Region input = input_region(calls[r]->inputs[0]);
    const Region output = output_region(calls[r]->outputs[0]);
    if (!same_elements(input, advanced(output, r * count), bytes) &&
        may_overlap(input, count, output, n * count, bytes)) {
      input = workspace.copy_of(input, count, bytes);
    }
    workspace.inputs.push_back(input);
    workspace.outputs.push_back(output);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    fan_out(workspace.inputs[i], workspace.outputs, count, bytes, workspace);
    for (Region& output : workspace.outputs) output.first += count;
  }
}

void gather_to_root(Calls calls, Workspace& workspace) {
  const auto root = static_cast<std::size_t>(calls[0]->root);
  const Operation& call = *calls[root];
  const std::size_t bytes = bytes_of(call.inputs[0]);
  const std::int64_t own_count = call.inputs[0].numel();
  Region own = input_region(call.inputs[0]);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const at::Tensor& output = call.outputs[i];
    const Region region = output_region(output);
    if (i == root && same_elements(own, region, bytes)) continue;
    if (!may_overlap(own, own_count, region, output.numel(), bytes)) continue;
    own = workspace.copy_of(own, own_count, bytes);
    break;
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const at::Tensor& input = calls[i]->inputs[0];
    copy(i == root ? own : input_region(input), output_region(call.outputs[i]), input.numel(), bytes, workspace);
  }
}

void scatter_from_root(Calls calls, Workspace& workspace) {
  const auto root = static_cast<std::size_t>(calls[0]->root);
  const Operation& call = *calls[root];
  const std::size_t bytes = bytes_of(call.inputs[0]);
  const at::Tensor& own = call.outputs[0];
  const auto send = [&](std::size_t i) {
    copy(input_region(call.inputs[i]), output_region(calls[i]->outputs[0]), call.inputs[i].numel(), bytes, workspace);
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i != root) send(i);
  }
  // Write the root's own output last, because it may lie in an input for another rank.
  Region input = input_region(call.inputs[root]);
  const Region output = output_region(own);
  if (!same_elements(input, output, bytes) && may_overlap(input, own.numel(), output, own.numel(), bytes)) {
    input = workspace.copy_of(input, own.numel(), bytes);
  }
  copy(input, output, own.numel(), bytes, workspace);
}

void alltoall_base(Calls calls, Workspace& workspace) {
  const std::size_t n = calls.size();
  const std::size_t bytes = bytes_of(calls[0]->inputs[0]);
  for (const Operation* const call : calls) {
    const std::int64_t count = call->inputs[0].numel();
    Region input = input_region(call->inputs[0]);
    const Region output = output_region(call->outputs[0]);
    if (may_overlap(input, count, output, call->outputs[0].numel(), bytes)) {
      input = workspace.copy_of(input, count, bytes);
    }
    workspace.inputs.push_back(input);
    workspace.outputs.push_back(output);
  }
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      const std::int64_t count = calls[from]->input_splits[to];
      copy(workspace.inputs[from], workspace.outputs[to], count, bytes, workspace);
      workspace.inputs[from].first += count;
      workspace.outputs[to].first += count;
    }
  }
}

// The memory that a set of regions spans. Answers in O(log n) whether a region touches any of it.
class WriteSet {
 public:
  void add(const Region& region, std::int64_t count, std::size_t element_bytes) {
    REHEARSE_CHECK(!sealed_, spans_.size());
    if (count > 0) spans_.push_back(extent(region, count, element_bytes));
  }

  // Call this once, after the last add() and before the first touches().
  void seal() {
    REHEARSE_CHECK(!sealed_, spans_.size());
    sealed_ = true;
    std::ranges::sort(spans_, [](const Extent& a, const Extent& b) { return std::less<>{}(a.begin, b.begin); });
    // From here on, `end` is the furthest end among this span and the ones before it.
    for (std::size_t i = 1; i < spans_.size(); ++i) spans_[i].end = std::max(spans_[i].end, spans_[i - 1].end);
  }

  bool touches(const Region& region, std::int64_t count, std::size_t element_bytes) const {
    REHEARSE_CHECK(sealed_, spans_.size());
    if (count == 0) return false;
    const Extent wanted = extent(region, count, element_bytes);
    const auto after =
        std::lower_bound(spans_.begin(), spans_.end(), wanted.end,
                         [](const Extent& span, const std::byte* end) { return std::less<>{}(span.begin, end); });
    return after != spans_.begin() && std::less<>{}(wanted.begin, std::prev(after)->end);
  }

 private:
  std::vector<Extent> spans_;
  bool sealed_ = false;
};

void alltoall(Calls calls, Workspace& workspace) {
  const std::size_t n = calls.size();
  const std::size_t bytes = bytes_of(calls[0]->inputs[0]);
  workspace.inputs.resize(n * n);
  for (std::size_t from = 0; from < n; ++from) {
    WriteSet writes;
    for (const at::Tensor& output : calls[from]->outputs) writes.add(output_region(output), output.numel(), bytes);
    writes.seal();
    for (std::size_t to = 0; to < n; ++to) {
      const at::Tensor& tensor = calls[from]->inputs[to];
      Region input = input_region(tensor);
      if (writes.touches(input, tensor.numel(), bytes)) input = workspace.copy_of(input, tensor.numel(), bytes);
      workspace.inputs[from * n + to] = input;
    }
  }
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      copy(workspace.inputs[from * n + to], output_region(calls[to]->outputs[from]), calls[from]->inputs[to].numel(),
           bytes, workspace);
    }
  }
}

void send_to_receive(Calls pair, Workspace& workspace) {
  const at::Tensor& sent = pair[0]->inputs[0];
  const std::size_t bytes = bytes_of(sent);
  Region input = input_region(sent);
  const Region output = output_region(pair[1]->outputs[0]);
  // A rank may send to itself, so input and output may overlap.
  if (!same_elements(input, output, bytes) && may_overlap(input, sent.numel(), output, sent.numel(), bytes)) {
    input = workspace.copy_of(input, sent.numel(), bytes);
  }
  copy(input, output, sent.numel(), bytes, workspace);
}

void nothing(Calls, Workspace&) {}

constexpr Mover copier_of(c10d::OpType type) noexcept {
  switch (type) {
    case c10d::OpType::BROADCAST:
      return broadcast;
    case c10d::OpType::ALLGATHER:
      return allgather;
    case c10d::OpType::_ALLGATHER_BASE:
      return allgather_base;
    case c10d::OpType::GATHER:
      return gather_to_root;
    case c10d::OpType::SCATTER:
      return scatter_from_root;
    case c10d::OpType::ALLTOALL_BASE:
      return alltoall_base;
    case c10d::OpType::ALLTOALL:
      return alltoall;
    case c10d::OpType::SEND:  // calls[0] sends and calls[1] receives
      return send_to_receive;
    case c10d::OpType::RECV:
    case c10d::OpType::RECVANYSOURCE:
    case c10d::OpType::BARRIER:
      return nothing;
    default:
      return nullptr;
  }
}
static_assert(comm::all_ops([](const comm::OpRow& row) {
                return (copier_of(row.type) != nullptr) == (row.kind != comm::OpKind::reduces);
              }),
              "what does not reduce is copied here");

}  // namespace

void move_copies(const comm::Transfer& transfer, Workspace& workspace) {
  copier_of(transfer.type)(transfer.calls, workspace);
}

}  // namespace rehearse::fakes

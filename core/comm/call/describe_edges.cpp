// SPDX-License-Identifier: BSD-3-Clause
// Calls in which each pair of ranks exchanges its own part: all-to-all, sends and receives.
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "call_describer.h"
#include "fingerprint.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;
using Splits = c10::SmallVector<std::int64_t, 0>;

// Says which number of rows does not fit, and which numbers would.
std::string unequal_rows(std::int64_t rows, int size) {
  const auto less = rows / size * size;
  return fmt::format(
      "Tensor's dim 0 does not divide equally across group size ({} rows for {} ranks; {}{} fit, or splits)", rows,
      size, less > 0 ? fmt::format("{} or ", less) : "", less + size);
}

// Converts splits of dimension 0 to numbers of elements. Without splits, makes equal parts.
void set_splits(const ArgumentChecks& check, const std::vector<std::int64_t>& rows, const at::Tensor& tensor, int size,
                Splits& splits) {
  const auto all_rows = tensor.dim() > 0 ? tensor.size(0) : 0;
  const auto row = all_rows > 0 ? tensor.numel() / all_rows : 0;
  if (rows.empty()) {
    if (all_rows % size != 0) check.fail(unequal_rows(all_rows, size));
    splits.assign(static_cast<std::size_t>(size), all_rows / size * row);
    return;
  }
  if (rows.size() != static_cast<std::size_t>(size)) check.fail("Number of tensor splits not equal to group size");
  std::int64_t sum = 0;
  for (const auto count : rows) {
    if (count < 0) check.fail(fmt::format("a split size is negative: {}", count));
    sum += count;
    splits.push_back(count * row);
  }
  if (sum == all_rows) return;
  check.fail(fmt::format("Split sizes doesn't match total dim 0 size ([{}] are {} of {} rows)", fmt::join(rows, ", "),
                         sum, all_rows));
}

// A rank must expect from itself what it sends to itself.
void check_own_edge(const ArgumentChecks& check, const Operation& call, int rank) {
  const auto sent = elements_to(call, rank);
  const auto expected = elements_from(call, rank);
  if (sent == expected) return;
  check.fail(fmt::format("this rank sends {} elements to itself but expects {}", sent, expected));
}

const at::Tensor& message(const ArgumentChecks& check, const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1) check.fail("takes a single tensor");
  check.dense(tensors.front());
  check.contiguous(tensors.front());
  return tensors.front();
}

// A rank may send to itself only in a coalesced call, as with NCCL, because only there can the matching receive be part
// of the same call.
void check_peer(const ArgumentChecks& check, const char* kind, int peer, int rank, int size, bool coalesced) {
  if (peer < 0 || peer >= size) check.fail(fmt::format("invalid {} rank: {}", kind, peer));
  if (peer == rank && !coalesced) {
    check.fail(fmt::format("invalid {} rank: {} is the rank of the calling process itself", kind, peer));
  }
}

void check_tag(const ArgumentChecks& check, int tag) {
  if (tag < 0) check.fail("Tag must be nonnegative");
}

}  // namespace

void CallDescriber::alltoall_base(const at::Tensor& output, const at::Tensor& input,
                                  const std::vector<std::int64_t>& output_splits,
                                  const std::vector<std::int64_t>& input_splits, Operation& call) const {
  const ArgumentChecks check("alltoall_base", size_);
  check.dense(output);
  check.dense(input);
  if (output.device() != input.device()) {
    check.fail("output tensor and input tensor must be on the same type of device");
  }
  check.same_type(input, output, 0);
  check.same_format(input, output, 0);
  set_splits(check, input_splits, input, size_, call.input_splits);
  set_splits(check, output_splits, output, size_, call.output_splits);
  check_own_edge(check, call, rank_);
  call.inputs.push_back(input);
  call.outputs.push_back(output);
}

void CallDescriber::alltoall(const Tensors& outputs, const Tensors& inputs, Operation& call) const {
  const ArgumentChecks check("alltoall", size_);
  for (const auto* const list : {&outputs, &inputs}) {
    if (list->size() != static_cast<std::size_t>(size_)) {
      check.fail(fmt::format("invalid {} tensor list (expected length {}, got {})",
                             list == &outputs ? "output" : "input", size_, list->size()));
    }
    for (const auto& tensor : *list) check.dense(tensor);
    check.same_type(inputs.front(), *list);
    for (std::size_t i = 0; i < list->size(); ++i) check.same_format(inputs.front(), (*list)[i], i);
  }
  call.inputs.assign(inputs.begin(), inputs.end());
  call.outputs.assign(outputs.begin(), outputs.end());
  check_own_edge(check, call, rank_);
}

void CallDescriber::point_to_point(const Tensors& tensors, int peer, int tag, bool coalesced, Operation& call) const {
  const char* const op = call.type == OpType::SEND ? "send" : call.type == OpType::RECV ? "recv" : "recv_any_source";
  const ArgumentChecks check(op, size_);
  const auto& tensor = message(check, tensors);
  if (call.type != OpType::RECVANYSOURCE) {
    check_peer(check, call.type == OpType::SEND ? "destination" : "source", peer, rank_, size_, coalesced);
  }
  check_tag(check, tag);
  call.peer = peer;
  call.tag = tag;
  (call.type == OpType::SEND ? call.inputs : call.outputs).push_back(tensor);
}

}  // namespace rehearse::comm

// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/call_of_dump.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/TensorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/call/fingerprint.h"

namespace rehearse::sim {
namespace {

using c10d::OpType;
using comm::Operation;

struct NamedCall {
  std::string_view name;
  OpType type;
};

// Names that back ends use besides those in the table of operations.
constexpr NamedCall kOtherNames[] = {
    {"_broadcast_oop", OpType::BROADCAST},
    {"_reduce_oop", OpType::REDUCE},
    {"all_reduce_sparse", OpType::_ALLREDUCE_SPARSE},
    {"sparse_all_reduce", OpType::_ALLREDUCE_SPARSE},
    {"barrier", OpType::BARRIER},
    {"ALLGATHER_coalesced", OpType::ALLGATHER_COALESCED},
};

// The name of an entry that records several coalesced calls. `type` and `tag` belong to the operation as a whole;
// `part` is the type of each tensor's own call.
struct CoalescedKind {
  std::string_view name;
  OpType type, part;
  int tag;
};

constexpr CoalescedKind kCoalesced[] = {
    {"allreduce_coalesced", OpType::ALLREDUCE_COALESCED, OpType::ALLREDUCE, 0},
    {"all_gather_into_tensor_coalesced", OpType::COALESCED, OpType::_ALLGATHER_BASE, Operation::kAllgatherIntoTensor},
    {"reduce_scatter_tensor_coalesced", OpType::COALESCED, OpType::_REDUCE_SCATTER_BASE,
     Operation::kReduceScatterTensor},
    {"REDUCE_SCATTER_coalesced", OpType::COALESCED, OpType::_REDUCE_SCATTER_BASE, Operation::kReduceScatterTensor},
};

OpType type_of(std::string_view name) {
  for (const auto& other : kOtherNames) {
    if (other.name == name) return other.type;
  }
  for (const auto& row : comm::op_table::kRows) {
    if (name == (row.recorder_name.empty() ? row.name : row.recorder_name)) return row.type;
  }
  return OpType::UNKNOWN;
}

c10::DeviceType device_of(std::string_view backend) {
  if (backend == "gloo" || backend == "mpi" || backend == "ucc" || backend == "simulation") return c10::kCPU;
  return backend == "xccl" ? c10::kXPU : c10::kCUDA;
}

at::Tensor tensor_of(const DumpedTensor& dumped, c10::DeviceType device) {
  const auto key = device == c10::kCPU    ? c10::DispatchKey::CPU
                   : device == c10::kCUDA ? c10::DispatchKey::CUDA
                                          : c10::DispatchKey::XPU;
  auto tensor = c10::make_intrusive<c10::TensorImpl>(c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(dumped.dtype),
                                                     c10::Device(device));
  tensor->set_sizes_contiguous(dumped.sizes);
  return at::Tensor(std::move(tensor));
}

void fill(const std::vector<DumpedTensor>& from, c10::DeviceType device, comm::TensorList& to) {
  for (const auto& tensor : from) to.push_back(tensor_of(tensor, device));
}

// NCCL's back end swaps inputs and outputs when it records a scatter. A rank other than the root has no inputs, so the
// record of such a rank has no outputs, or one output without elements.
bool is_turned_round(const DumpedCall& entry) {
  const auto stands_for_none = [](const DumpedTensor& tensor) {
    return std::ranges::find(tensor.sizes, 0) != tensor.sizes.end();
  };
  return entry.inputs.size() == 1 && (entry.outputs.size() != 1 || stands_for_none(entry.outputs.front()));
}

// True if the entry has the tensors that the table of operations compares.
bool has_its_tensors(const Operation& call, std::size_t ranks) {
  if (call.type == OpType::ALLTOALL && (call.inputs.size() != ranks || call.outputs.size() != ranks)) return false;
  const auto& row = comm::op_row(call.type);
  for (const auto tensors : {row.alike, row.as_it_lies}) {
    const bool of_outputs = tensors == comm::OpTensors::outputs;
    if (tensors != comm::OpTensors::none && (of_outputs ? call.outputs : call.inputs).empty()) return false;
  }
  return true;
}

void add_parts(const DumpedCall& entry, const CoalescedKind& kind, Operation& call) {
  call.type = kind.type;
  call.tag = kind.tag;
  const auto device = device_of(entry.backend);
  for (std::size_t i = 0; i < std::min(entry.inputs.size(), entry.outputs.size()); ++i) {
    auto& part = call.parts.emplace_back();
    part.type = kind.part;
    part.inputs.push_back(tensor_of(entry.inputs[i], device));
    part.outputs.push_back(tensor_of(entry.outputs[i], device));
    if (kind.part == OpType::ALLREDUCE) part.tag = Operation::kCopied;
  }
}

// Adds to the key everything in the entry that shapes the operation.
void add_key(const DumpedCall& entry, std::string& key) {
  key += fmt::format("{}:{}", entry.backend, entry.name);
  for (const auto* const list : {&entry.inputs, &entry.outputs}) {
    key += '|';
    for (const auto& tensor : *list)
      key += fmt::format("{}[{}]", static_cast<int>(tensor.dtype), fmt::join(tensor.sizes, ","));
  }
  key += '\n';
}

}  // namespace

Operation CallsOfDumps::unknown(const DumpedCall& entry) {
  Operation call;
  call.label = &*names_.insert(fmt::format("{}:{}", entry.backend, entry.name)).first;
  return call;
}

Operation CallsOfDumps::single(const DumpedCall& entry) {
  Operation call;
  for (const auto& kind : kCoalesced) {
    if (kind.name == entry.name) {
      add_parts(entry, kind, call);
      return call;
    }
  }
  call.type = type_of(entry.name);
  const auto device = device_of(entry.backend);
  const bool turned = call.type == OpType::SCATTER && is_turned_round(entry);
  fill(turned ? entry.outputs : entry.inputs, device, call.inputs);
  fill(turned ? entry.inputs : entry.outputs, device, call.outputs);
  // The recorder has one name for both kinds of all-to-all. Several inputs mean the kind with a list, in which tensor j
  // is for rank j.
  if (comm::op_row(call.type).kind == comm::OpKind::all_to_all)
    call.type = entry.inputs.size() > 1 ? OpType::ALLTOALL : OpType::ALLTOALL_BASE;
  if (call.type == OpType::BARRIER) {
    call.inputs.clear();
    call.outputs.clear();
  }
  return call.type == OpType::UNKNOWN || !has_its_tensors(call, ranks_) ? unknown(entry) : std::move(call);
}

Operation CallsOfDumps::described(std::span<const DumpedCall* const> entries) {
  std::vector<const DumpedCall*> calls;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(calls),
               [](const DumpedCall* entry) { return !entry->ends_coalescing(); });
  if (calls.size() == 1) return single(*calls.front());
  Operation call;
  call.type = OpType::COALESCED;
  for (const auto* const entry : calls) call.parts.push_back(single(*entry));
  return call;
}

const ComparedCall& CallsOfDumps::collective(std::span<const DumpedCall* const> entries) {
  std::string key;
  for (const auto* const entry : entries) add_key(*entry, key);
  const auto [known, is_new] = known_.try_emplace(std::move(key));
  auto& [operation, fingerprint] = known->second;
  if (is_new) {
    operation = described(entries);
    fingerprint = comm::agreement_hash(operation, operation.label != nullptr ? comm::text_hash(*operation.label) : 0);
  }
  return known->second;
}

const ComparedCall& CallsOfDumps::message(const DumpedCall& entry) {
  std::string key = fmt::format("{} {} ", entry.source, entry.target);
  add_key(entry, key);
  const auto [known, is_new] = known_.try_emplace(std::move(key));
  if (!is_new) return known->second;
  auto& call = known->second.operation;
  const bool sends = entry.name == "send";
  call.type = sends ? OpType::SEND : entry.is_from_any() ? OpType::RECVANYSOURCE : OpType::RECV;
  call.peer = sends ? entry.target : entry.is_from_any() ? -1 : entry.source;
  const auto device = device_of(entry.backend);
  const auto& tensors = sends || entry.outputs.empty() ? entry.inputs : entry.outputs;
  (sends ? call.inputs : call.outputs)
      .push_back(tensors.empty() ? tensor_of({{0}}, device) : tensor_of(tensors.front(), device));
  return known->second;
}

}  // namespace rehearse::sim

// SPDX-License-Identifier: BSD-3-Clause
#include "buffer_check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "byte_hash.h"
#include "spoilt_memory.h"

namespace rehearse::sim {
namespace {

using Of = OperatorAccess::Of;

std::string not_waited_for(int rank) { return fmt::format(", which rank {} has not waited for", rank); }

std::string spoilt_by(const SpoilingCall& call) {
  const auto where = call.where.describe();
  return fmt::format(
      " reads the tensor of {}{}, of which the root alone has the result: Gloo leaves partial results in "
      "the tensors of the other ranks",
      call.title, where.empty() ? "" : " (called at " + where + ")");
}

std::string here() {
  const auto where = exec::CallSite::capture().describe();
  return where.empty() ? "" : " at " + where;
}

template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, visit);
  }
}

}  // namespace

// What a rank's operators are looked at by.
class BufferCheck::OfRank final : public operators::OperatorWatcher {
 public:
  OfRank(BufferCheck& check, int rank, const CallsOfRank& calls) : rank(rank), check_(check), calls_(calls) {}

  bool is_idle() const noexcept override { return (calls_.empty() && spoilt.empty()) || check_.finding_.is_over(); }

  void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) override {
    resizing_ = nullptr;
    if (is_idle()) return;
    if (check_.access_of(op).resizes) resizing_ = &op.operator_name().name;
    check_.look_at(op, arguments, calls_);
    if (!spoilt.empty()) check_.look_at_spoilt(op, arguments, *this);
  }

  void after(c10::ArrayRef<c10::IValue>) override {
    if (resizing_ != nullptr) check_.look_for_exchanged(*resizing_, calls_);
  }

  const int rank;
  SpoiltMemory spoilt;

 private:
  BufferCheck& check_;
  const CallsOfRank& calls_;
  const std::string* resizing_ = nullptr;  // the operator's name
};

BufferCheck::BufferCheck(exec::RankExecutor& executor, const CallWatch& calls) : finding_(executor) {
  for (int rank = 0; rank < executor.options().ranks; ++rank) {
    ranks_.push_back(std::make_unique<OfRank>(*this, rank, calls.calls_of(rank)));
  }
}

BufferCheck::~BufferCheck() = default;

operators::OperatorWatcher& BufferCheck::operators_of(int rank) noexcept {
  return *ranks_[static_cast<std::size_t>(rank)];
}

const OperatorAccess& BufferCheck::access_of(const c10::OperatorHandle& op) {
  return accesses_.try_emplace(&op.schema(), op).first->second;
}

void BufferCheck::look_at(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                          const CallsOfRank& calls) {
  const auto& access = access_of(op);
  if (!access.touches_data) return;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (access.arguments[i] == Of::nothing) continue;
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) { look_at(tensor, access.arguments[i], op, calls); });
  }
}

void BufferCheck::look_at(const at::Tensor& tensor, Of access, const c10::OperatorHandle& op,
                          const CallsOfRank& calls) {
  for (const auto& call : calls) {
    for (const auto& buffer : call->buffers) {
      if (access == Of::read && !buffer.writes()) continue;
      if (!overlap(buffer.footprint, tensor) || !buffer.is_there()) continue;
      finding_.stop_here(fmt::format("rank {}: {}{} {} {}{}", call->rank, op.operator_name().name, here(),
                                     access == Of::read ? "reads" : "writes", describe(buffer, *call),
                                     not_waited_for(call->rank)));
    }
  }
}

// What is read counts before what is written: an operator may do both with one tensor.
void BufferCheck::look_at_spoilt(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, OfRank& rank) {
  const auto& access = access_of(op);
  if (!access.touches_data) return;
  const auto for_each = [&](Of wanted, const auto& visit) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (access.arguments[i] == wanted) for_each_tensor(arguments[i], visit);
    }
  };
  for_each(Of::read, [&](const at::Tensor& tensor) {
    if (const auto* const call = rank.spoilt.find(Footprint(tensor))) {
      finding_.stop_here(fmt::format("rank {}: {}{}{}", rank.rank, op.operator_name().name, here(), spoilt_by(*call)));
    }
  });
  for_each(Of::overwrite, [&](const at::Tensor& tensor) { rank.spoilt.write(Footprint(tensor)); });
}

void BufferCheck::look_at_spoilt(const WatchedCall& call, OfRank& rank) {
  using Value = WatchedBuffer::Value;
  for (const auto& buffer : call.buffers) {
    if (buffer.value == Value::replaced) continue;
    if (const auto* const other = rank.spoilt.find(buffer.footprint)) {
      finding_.stop_here(fmt::format("rank {}: {}{}{}", call.rank, call.title, here(), spoilt_by(*other)));
    }
  }
  for (const auto& buffer : call.buffers) {
    if (buffer.value == Value::replaced) rank.spoilt.write(buffer.footprint);
    if (buffer.value == Value::spoilt) rank.spoilt.spoil(buffer, {call.title, call.where});
  }
}

void BufferCheck::look_for_exchanged(std::string_view op, const CallsOfRank& calls) {
  for (const auto& call : calls) {
    if (!call->under_way) continue;
    for (const auto& buffer : call->buffers) {
      if (!buffer.is_exchanged()) continue;
      finding_.stop_here(fmt::format("rank {}: {}{} resizes {}{}", call->rank, op, here(), describe(buffer, *call),
                                     not_waited_for(call->rank)));
    }
  }
}

// Two calls on one tensor: only one that is still under way is in the other's way, where a group's calls are in order.
void BufferCheck::begin(WatchedCall& call, const CallsOfRank& before) {
  if (call.buffers.size() > 1 && call.call->parts.empty()) look_at_outputs(call);
  for (auto& buffer : call.buffers) {
    buffer.hash = hash_of(buffer.footprint);
    for (const auto& other : before) {
      if (!other->under_way && other->group == call.group) continue;
      for (const auto& used : other->buffers) {
        if (!buffer.writes() && !used.writes()) continue;
        if (!overlap(buffer.footprint, used.footprint) || !used.is_there()) continue;
        finding_.stop_here(fmt::format("rank {}: {}{} {} {}{}", call.rank, call.title, here(),
                                       buffer.writes() ? "writes" : "reads", describe(used, *other),
                                       not_waited_for(call.rank)));
      }
    }
  }
  look_at_spoilt(call, *ranks_[static_cast<std::size_t>(call.rank)]);
}

// Whatever order a back end writes them in, one of the two is lost. Coalesced calls are made one after the other.
void BufferCheck::look_at_outputs(const WatchedCall& call) {
  std::vector<const Footprint*> written;
  for (const auto& buffer : call.buffers) {
    if (buffer.use == WatchedBuffer::Use::output && !buffer.footprint.empty()) written.push_back(&buffer.footprint);
  }
  const auto begin_of = [](const Footprint* each) { return each->bounds().begin; };
  std::stable_sort(written.begin(), written.end(),
                   [&](const auto* a, const auto* b) { return begin_of(a) < begin_of(b); });
  for (auto each = written.begin(); each != written.end(); ++each) {
    for (auto next = each + 1; next != written.end() && begin_of(*next) < (*each)->bounds().end; ++next) {
      if (!overlap(**each, **next)) continue;
      finding_.stop_here(fmt::format("rank {}: {}{} has two outputs in the same memory, where one overwrites the other",
                                     call.rank, call.title, here()));
    }
  }
}

bool BufferCheck::move(const WatchedCall& call) {
  if (!stands(call)) return false;
  for (const auto& buffer : call.buffers) {
    if (hash_of(buffer.footprint) == buffer.hash) continue;
    finding_.tell(
        fmt::format("rank {}: {} was written while it was under way, and by no operator of the rank: through a "
                    "pointer, or by a thread",
                    call.rank, describe(buffer, call)));
    return false;
  }
  return true;
}

bool BufferCheck::stands(const WatchedCall& call) {
  for (const auto& buffer : call.buffers) {
    if (!buffer.is_exchanged()) continue;
    finding_.tell(
        fmt::format("rank {}: {} got other memory or another size while it was under way, and by no operator "
                    "of the rank: through the tensor or its storage",
                    call.rank, describe(buffer, call)));
    return false;
  }
  return true;
}

}  // namespace rehearse::sim

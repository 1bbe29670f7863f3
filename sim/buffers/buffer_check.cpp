// SPDX-License-Identifier: BSD-3-Clause
#include "buffer_check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/TensorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byte_hash.h"

namespace rehearse::sim {
namespace {

using Of = OperatorAccess::Of;

std::string not_waited_for(int rank) { return fmt::format(", which rank {} has not waited for", rank); }

std::string undefined_by(const UndefiningCall& call) {
  return fmt::format(
      " reads the tensor of {}, but only the root has the result: Gloo leaves partial results in the tensors of the "
      "other ranks",
      describe(call.title, call.where));
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

// Checks the operators of one fiber against the rank's calls.
class BufferCheck::OfFiber final : public operators::OperatorWatcher {
 public:
  OfFiber(BufferCheck& check, int rank)
      : check_(check), rank_(rank), undefined_(check.undefined_[static_cast<std::size_t>(rank)]) {}

  bool is_idle() const noexcept override {
    return (check_.calls_.knows_all(rank_) && undefined_.empty()) || check_.finding_.is_over();
  }

  void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) override {
    resizes_.clear();
    if (is_idle()) return;
    const auto& access = check_.accesses_.try_emplace(&op.schema(), op).first->second;
    const std::string& name = op.operator_name().name;
    if (access.resizes) note_storages(name, arguments);
    if (!access.touches_data) return;
    for_each(access, arguments, [&](const at::Tensor& tensor, Of of) { look_at(tensor, of, name); });
    if (!undefined_.empty()) look_at_undefined(access, arguments, name);
  }

  void after(c10::ArrayRef<c10::IValue>) override {
    for (const auto& memory : resizes_) look_for_exchanged(memory);
  }

  void save(const at::Tensor& tensor) override {
    if (is_idle()) return;
    look_at(tensor, Of::read, "torch::save");
    look_at_undefined(tensor, "torch::save");
  }

 private:
  template <class Visit>
  static void for_each(const OperatorAccess& access, c10::ArrayRef<c10::IValue> arguments, const Visit& visit) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Of of = access.arguments[i];
      if (of != Of::nothing) for_each_tensor(arguments[i], [&](const at::Tensor& tensor) { visit(tensor, of); });
    }
  }

  void look_at(const at::Tensor& tensor, Of access, std::string_view op) {
    const auto which = access == Of::read ? BufferIndex::Which::written : BufferIndex::Which::all;
    for (const auto* const buffer : check_.calls_.buffers().find(Footprint(tensor), which)) {
      if (buffer->call->rank != rank_ || !buffer->is_there()) continue;
      check_.finding_.stop_here(rank_, fmt::format("{}{} {} {}{}", op, here(), access == Of::read ? "reads" : "writes",
                                                   describe(*buffer), not_waited_for(rank_)));
    }
  }

  // Check reads before recording writes, because an operator may do both with one tensor.
  void look_at_undefined(const OperatorAccess& access, c10::ArrayRef<c10::IValue> arguments, std::string_view op) {
    for_each(access, arguments, [&](const at::Tensor& tensor, Of of) {
      if (of == Of::read) look_at_undefined(tensor, op);
    });
    for_each(access, arguments, [&](const at::Tensor& tensor, Of of) {
      if (of == Of::overwrite) undefined_.write(Footprint(tensor));
    });
  }

  void look_at_undefined(const at::Tensor& tensor, std::string_view op) {
    const auto* const call = undefined_.find(Footprint(tensor));
    if (call != nullptr) check_.finding_.stop_here(rank_, fmt::format("{}{}{}", op, here(), undefined_by(*call)));
  }

  void note_storages(const std::string& op, c10::ArrayRef<c10::IValue> arguments) {
    op_ = &op;
    for (const auto& argument : arguments) {
      for_each_tensor(argument, [this](const at::Tensor& tensor) {
        if (bounds_of(tensor).empty()) return;
        const auto* const begin = static_cast<const std::byte*>(tensor.storage().data());
        resizes_.push_back({begin, begin + tensor.storage().nbytes()});
      });
    }
  }

  // `memory`: the bytes that a storage had before the operator.
  void look_for_exchanged(const ByteSpan& memory) {
    for (const auto* const buffer : check_.calls_.buffers().find(memory, BufferIndex::Which::all)) {
      if (buffer->call->rank != rank_ || !buffer->call->under_way || !buffer->is_exchanged()) continue;
      check_.finding_.stop_here(
          rank_, fmt::format("{}{} resizes {}{}", *op_, here(), describe(*buffer), not_waited_for(rank_)));
    }
  }

  BufferCheck& check_;
  const int rank_;
  UndefinedMemory& undefined_;
  std::vector<ByteSpan> resizes_;    // the memory of the arguments' storages, if the operator may exchange it
  const std::string* op_ = nullptr;  // the operator's name
};

BufferCheck::BufferCheck(exec::RankExecutor& executor, const CallWatch& calls)
    : calls_(calls), finding_(executor), undefined_(static_cast<std::size_t>(executor.options().ranks)) {}

std::unique_ptr<operators::OperatorWatcher> BufferCheck::watch_fiber_of(int rank) {
  return std::make_unique<OfFiber>(*this, rank);
}

// An earlier collective conflicts with a collective of its group only while it is under way, because a group carries
// out its collectives in order. Messages and calls of other groups conflict until the rank knows that they have ended.
void BufferCheck::begin(WatchedCall& call, const std::vector<SharedBytes>& shared) {
  if (call.buffers.size() > 1 && call.call->parts.empty()) look_at_outputs(call);
  auto next = shared.begin();
  for (auto& buffer : call.buffers) {
    look_at_memory(buffer);
    buffer.hash = hash_of(buffer.footprint);
    for (; next != shared.end() && next->buffer == &buffer; ++next) {
      const auto& used = *next->earlier;
      if (used.call->rank != call.rank || (!used.call->under_way && used.call->ends_before(call))) continue;
      finding_.stop_here(call.rank,
                         fmt::format("{}{} {} {}{}", call.title.text(), here(), buffer.writes() ? "writes" : "reads",
                                     describe(used), not_waited_for(call.rank)));
    }
  }
  look_at_undefined(call);
}

void BufferCheck::look_at_undefined(const WatchedCall& call) {
  using Value = WatchedBuffer::Value;
  auto& undefined = undefined_[static_cast<std::size_t>(call.rank)];
  for (const auto& buffer : call.buffers) {
    if (buffer.value == Value::replaced) continue;
    if (const auto* const other = undefined.find(buffer.footprint)) {
      finding_.stop_here(call.rank, fmt::format("{}{}{}", call.title.text(), here(), undefined_by(*other)));
    }
  }
  for (const auto& buffer : call.buffers) {
    if (buffer.value == Value::replaced) undefined.write(buffer.footprint);
    if (buffer.value == Value::undefined) undefined.mark_undefined(buffer, {call.title, call.where});
  }
}

// If two outputs overlap, one of them is lost, in whatever order a back end writes them. Coalesced calls are exempt,
// because they run one after the other.
void BufferCheck::look_at_outputs(const WatchedCall& call) {
  std::vector<const Footprint*> written;
  for (const auto& buffer : call.buffers) {
    if (buffer.use == WatchedBuffer::Use::output && !buffer.footprint.empty()) written.push_back(&buffer.footprint);
  }
  const auto begin_of = [](const Footprint* each) { return each->bounds().begin; };
  std::ranges::stable_sort(written, [&](const auto* a, const auto* b) { return begin_of(a) < begin_of(b); });
  for (auto each = written.begin(); each != written.end(); ++each) {
    for (auto next = each + 1; next != written.end() && begin_of(*next) < (*each)->bounds().end; ++next) {
      if (!overlap(**each, **next)) continue;
      finding_.stop_here(call.rank,
                         fmt::format("{}{} has two outputs in the same memory, so that one overwrites the other",
                                     call.title.text(), here()));
    }
  }
}

// The bytes behind the tensor's own memory may belong to another tensor, or to nobody.
void BufferCheck::look_at_memory(const WatchedBuffer& buffer) {
  const auto owned = buffer.owned_bytes();
  const auto& bounds = buffer.footprint.bounds();
  if (owned >= bounds.size()) return;
  const auto& tensor = *buffer.tensor;
  finding_.stop_here(
      buffer.call->rank,
      fmt::format("{}{} works on more memory than its tensor owns: {} of sizes [{}] take {} bytes, but only "
                  "the first {} of them exist",
                  buffer.call->title.text(), here(), tensor.dtype().name(), fmt::join(tensor.sizes(), ", "),
                  bounds.size(), owned));
}

bool BufferCheck::move(const WatchedCall& call) {
  if (!is_unchanged(call)) return false;
  for (const auto& buffer : call.buffers) {
    if (!buffer.is_readable()) {
      finding_.tell(call.rank,
                    fmt::format("the memory of {} was freed while the call was under way", describe(buffer)));
      return false;
    }
    if (hash_of(buffer.footprint) == buffer.hash) continue;
    finding_.tell(call.rank,
                  fmt::format("{} changed while the call was under way, and no operator of the rank wrote it: look for "
                              "a write through a pointer, or by another thread",
                              describe(buffer)));
    return false;
  }
  return true;
}

void BufferCheck::arrive(WatchedCall& call) noexcept {
  for (auto& buffer : call.buffers) {
    if (buffer.is_there() && buffer.is_readable()) buffer.hash = hash_of(buffer.footprint);
  }
}

void BufferCheck::learn(const WatchedCall& call) noexcept {
  if (finding_.is_over()) return;
  for (const auto& buffer : call.buffers) {
    if (buffer.others_write || !buffer.is_there() || !buffer.is_readable()) continue;
    if (hash_of(buffer.footprint) == buffer.hash) continue;
    return finding_.tell(
        call.rank,
        fmt::format("{} changed after the call had moved its data and before rank {} waited for the call, and "
                    "no operator of the rank wrote it: look for a write through a pointer, or by another thread",
                    describe(buffer), call.rank));
  }
}

bool BufferCheck::is_unchanged(const WatchedCall& call) {
  for (const auto& buffer : call.buffers) {
    if (!buffer.is_exchanged()) continue;
    finding_.tell(
        call.rank,
        fmt::format("{} got other memory or another size while the call was under way, and no operator of the "
                    "rank did that: look for a call of the tensor or of its storage",
                    describe(buffer)));
    return false;
  }
  return true;
}

}  // namespace rehearse::sim

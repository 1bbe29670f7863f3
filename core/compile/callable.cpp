// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/callable.h>

#include <optional>
#include <utility>

#include <c10/util/Exception.h>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_number.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "compile/arguments/marks.h"
#include "compile/callable_impl.h"
#include "compile/fixed_marks.h"
#include "compile/guards/module_modes.h"
#include "compile/parts/compile_parts.h"
#include "compile/parts/eager_backend.h"

namespace rehearse::compiler {
namespace {

// Where the inputs of a captured graph lie in this call.
InputMemory memory_of(const std::vector<InputBinding>& inputs, const LeafList& leaves) {
  InputMemory memory;
  for (const c10::IValue& value : values_of(inputs, leaves)) {
    const bool has_memory = value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage();
    memory.push_back(has_memory ? value.toTensor().storage().unsafeGetStorageImpl() : nullptr);
  }
  return memory;
}

int rank_or_none() { return exec::this_rank::is_fiber() ? exec::this_rank::rank() : -1; }

}  // namespace

RankCache& Callable::Impl::cache_of_this_rank() {
  OfRank& own = caches_[rank_or_none()];
  const std::uint64_t world = exec::world_number();
  if (!own.cache || own.world != world) {
    own.cache = std::make_unique<RankCache>(options_);
    own.world = world;
  }
  return *own.cache;
}

const RankCache* Callable::Impl::find_cache() const {
  const auto found = caches_.find(rank_or_none());
  return found == caches_.end() || found->second.world != exec::world_number() ? nullptr : found->second.cache.get();
}

const Entry* Callable::Impl::prepare(const LeafList& leaves, UserCode& code) {
  // Within another function's capture the code is part of that.
  if (capture::FakeMode::current()) return nullptr;
  RankCache& cache = cache_of_this_rank();
  ++cache.stats.calls;
  cache.stats.compiles_in_last_call = 0;
  Call call{leaves, code, cache, GlobalState::current()};
  call.state.types = &code.types();
  if (!module_) call.state.module_modes = module_modes();  // a module's own guards see its modes
  cache.agreement.begin_call();
  Entry* const hit = cache.find(leaves, call.state);
  if (hit && options_.verify == Verify::Always) return verify_always(call, *hit);
  return is_served(call, hit != nullptr) ? serve(call, *hit) : miss(call, hit != nullptr);
}

// Ranks compare that once a call.
bool Callable::Impl::is_served(Call& call, bool hit) {
  return std::exchange(call.was_compared, true) ? hit : call.cache.agreement.is_served(hit);
}

const Entry* Callable::Impl::serve(Call& call, Entry& hit) {
  if (options_.verify == Verify::Always) return verify_always(call, hit);
  if (hit.segments) return serve_in_segments(call, hit);
  if (is_to_be_verified(hit)) return verify(call, hit);
  return note_hit(call, hit);
}

const Entry* Callable::Impl::note_hit(Call& call, const Entry& entry) {
  ++call.cache.stats.hits;
  call.cache.agreement.note_hit(entry.number);
  return &entry;
}

// No entry serves the call: the code runs as it is, or has done so.
const Entry* Callable::Impl::run_eagerly(Call& call) {
  ++call.cache.stats.eager_calls;
  return nullptr;
}

CallView Callable::Impl::view_of(Call& call) {
  static const std::vector<std::string> none;
  if (call.sources.empty()) call.sources = call.code.sources(options_.argument_names);
  const parallel::DdpBuckets* ddp = parallel::ActiveDdp::current();
  return {call.leaves, call.sources, module_, ddp ? ddp->ignored : none, options_.argument_names, call.state};
}

void Callable::Impl::note_failures(Call& call, bool for_others) {
  if (call.cache.entries.empty() || call.cache.warned_of_limit) return;
  Recompile& recompile = call.cache.recompiles.emplace_back();
  recompile.call = call.cache.stats.calls;
  for (auto entry = call.cache.entries.rbegin(); entry != call.cache.entries.rend(); ++entry) {
    GuardFailure failure;
    const bool holds = entry->holds(call.leaves, call.state, &failure);
    if (holds && for_others) continue;
    if (holds) failure = {kFunctionItself, "the graph that was compiled", "another one", ""};
    recompile.failures.push_back(failure);
  }
}

bool Callable::Impl::may_compile(Call& call) {
  RankCache& cache = call.cache;
  if (!cache.refusal.empty()) return false;
  if (cache.paths() < options_.recompile_limit) return true;
  if (!std::exchange(cache.warned_of_limit, true)) {
    const bool has_failure = !cache.recompiles.empty() && !cache.recompiles.back().failures.empty();
    TORCH_WARN("rehearse::compile: '", options_.name, "' has been compiled ", cache.paths(),
               " times, the limit; what no entry serves runs as it is from now on",
               has_failure ? ". Last: " + text_of(cache.recompiles.back().failures.front()) : "");
  }
  return false;
}

// What the user has said of sizes, whatever is seen.
void Callable::Impl::absorb_marks(const Call& call) {
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    if (call.leaves[i].kind != LeafKind::Tensor) continue;
    const at::Tensor& tensor = *call.leaves[i].tensor;
    for (const Mark& mark : marks_of(tensor)) {
      if (mark.dynamic) {
        call.cache.dynamism.mark_dynamic(call.sources[i], mark.dimension, tensor.sizes().size());
      } else {
        call.cache.dynamism.mark_static(call.sources[i], mark.dimension);
      }
    }
  }
}

const Entry* Callable::Impl::miss(Call& call, bool for_others) {
  std::optional<RankCache::Lock> lock(call.cache);
  // Another fiber may have compiled it meanwhile.
  const auto find = [&] { return call.now ? find_as_now(call) : call.cache.find(call.leaves, call.state); };
  if (Entry* const made = for_others ? nullptr : find()) {
    lock.reset();
    return call.now ? serve_as_now(call) : serve(call, *made);
  }
  note_failures(call, for_others);
  if (may_compile(call)) {
    if (const Entry* const made = compile(call)) return made;
  } else if (call.now) {  // the code has run, and must not again
    const Capture& now = *call.now;
    call.code.served = CallResult{now.frame, by_operators(now.module)(values_of(now.inputs, call.leaves))};
  }
  return run_eagerly(call);
}

// Together with other ranks, where the options say so: whatever comes of it here, they are told.
const Entry* Callable::Impl::compile(Call& call) {
  Agreement& agreement = call.cache.agreement;
  const auto& recompiles = call.cache.recompiles;
  const bool noted = !recompiles.empty() && recompiles.back().call == call.cache.stats.calls;
  agreement.begin_compile(noted ? recompiles.back().failures : std::vector<GuardFailure>(), call.cache.entries.size());
  view_of(call);
  agreement.absorb(call.leaves, call.sources, call.cache.dynamism);
  absorb_marks(call);
  std::unique_ptr<Entry> made;
  try {
    made = capture_entry(call);
  } catch (const RankAborted&) {
    throw;
  } catch (const std::exception& error) {
    agreement.fail(error.what());
    throw;
  }
  if (made == nullptr) return nullptr;
  // Segments have told of themselves.
  if (agreement.is_open()) {
    agreement.commit(GraphHash{static_cast<std::uint64_t>(graph::structural_hash(*made->capture.module))});
  }
  return add_entry(call, std::move(*made));
}

Capture Callable::Impl::capture(Call& call, std::vector<LeafShape> shape, SegmentedCapture* segments) {
  return capture_call(view_of(call), std::move(shape), call.code, segments);
}

void Callable::Impl::refuse(Call& call, const std::string& why) {
  call.cache.refusal = why;
  TORCH_WARN("rehearse::compile: '", options_.name, "' cannot be captured and runs as it is: ", why);
}

Entry Callable::Impl::make_entry(Call& call, Capture captured) {
  RankCache& cache = call.cache;
  const parallel::DdpBuckets* buckets = this->buckets();
  if (captured.ddp && options_.optimize_ddp) buckets = &*captured.ddp;
  const InputMemory memory = memory_of(captured.inputs, call.leaves);
  CompiledParts parts = compile_parts(captured.module, captured.shapes, *cache.backend, buckets, memory);
  if (MemoryClasses(*captured.module, memory).writes_to_inputs(*captured.module)) {
    captured.guards.set_memory(call.leaves);
  }
  if (parts.communicates) cache.agreement.note_communication();
  // Recording a backward may have asked for more.
  captured.guards.renew_symbols();
  refuse_fixed_marks(call.leaves, captured.guards.symbols().places(), *captured.shapes);
  Entry entry;
  entry.run = std::move(parts.run);
  entry.explanation = {.graphs = std::move(parts.graphs),
                       .bucket_table = std::move(parts.bucket_table),
                       .split_warnings = std::move(parts.warnings),
                       .kept_by_reference = captured.kept_by_reference};
  entry.capture = std::move(captured);
  entry.number = cache.entries.size();
  pass_compile_time_of(entry.explanation.graphs);
  return entry;
}

const parallel::DdpBuckets* Callable::Impl::buckets() const {
  return options_.optimize_ddp ? parallel::ActiveDdp::current() : nullptr;
}

void Callable::Impl::count_compile(CompileStats& stats, std::size_t graphs) {
  ++stats.compiles;
  ++stats.compiles_in_last_call;
  stats.graphs += static_cast<std::int64_t>(graphs);
}

const Entry* Callable::Impl::add_entry(Call& call, Entry entry) {
  RankCache& cache = call.cache;
  count_compile(cache.stats, entry.explanation.graphs.size());
  cache.entries.push_back(std::move(entry));
  cache.calls_that_kept = 0;
  cache.by_use.insert(cache.by_use.begin(), &cache.entries.back());
  return &cache.entries.back();
}

CompileStats Callable::Impl::stats() const {
  const RankCache* cache = find_cache();
  return cache ? cache->stats : CompileStats{};
}

Explanation Callable::Impl::explain() const {
  Explanation explanation;
  explanation.function = options_.name;
  if (const RankCache* cache = find_cache()) {
    explanation.stats = cache->stats;
    for (const Entry& entry : cache->entries) {
      EntryExplanation& told = explanation.entries.emplace_back(entry.explanation);
      told.guards = entry.capture.guards.symbols().texts();
      for (const capture::Remark& remark : entry.capture.remarks) {
        const std::string line = remark.where.describe();
        told.remarks.push_back(remark.message + (line.empty() ? "" : " (" + line + ")"));
      }
    }
    explanation.recompiles = cache->recompiles;
    explanation.refusal = cache->refusal;
  }
  return explanation;
}

Callable::Callable(CompileOptions options, std::shared_ptr<torch::nn::Module> module)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(module))) {}
Callable::~Callable() = default;

const Entry* Callable::prepare(const LeafList& leaves, UserCode& code) { return impl_->prepare(leaves, code); }
Explanation Callable::explain() const { return impl_->explain(); }
CompileStats Callable::stats() const { return impl_->stats(); }

std::vector<c10::IValue> Callable::run(const Entry& entry, const LeafList& leaves) {
  return entry.run(values_of(entry.capture.inputs, leaves));
}

const std::shared_ptr<const void>& Callable::frame(const Entry& entry) noexcept { return entry.capture.frame; }

}  // namespace rehearse::compiler

// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/callable.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_number.h>

#include "compile/call_attempt.h"
#include "compile/guards/global_state.h"
#include "compile/guards/module_modes.h"

namespace rehearse::compiler {

// The thread that holds something which only one thread may hold at a time. The same thread may enter it again.
class Holder {
 public:
  bool is_other_thread() const noexcept { return depth_ > 0 && thread_ != std::this_thread::get_id(); }
  void enter() noexcept {
    thread_ = std::this_thread::get_id();
    ++depth_;
  }
  void leave() noexcept { --depth_; }

 private:
  std::thread::id thread_;
  int depth_ = 0;
};

// Outside of a World, several threads may call compiled functions at once. They share a cache for each function. Nobody
// waits while a thread compiles, because that thread runs the user's code, which may itself wait for other threads.
// `mutex` is held only for short steps: to look into a cache, and to read or change the members below.
struct CallingThreads {
  static CallingThreads& get() {
    static CallingThreads threads;
    return threads;
  }

  std::recursive_mutex mutex;
  // Captures change the default generator, which is process-wide. So only one thread compiles at a time.
  Holder compiling;
};

// Enters the holders while it lives, and unlocks `lock` (of CallingThreads::mutex) meanwhile.
class CompilingTurn {
 public:
  // `compiling`: null if this compilation need not be the only one in the process.
  CompilingTurn(std::unique_lock<std::recursive_mutex>& lock, Holder& function, Holder* compiling)
      : lock_(lock), function_(function), compiling_(compiling) {
    function_.enter();
    if (compiling_) compiling_->enter();
    lock_.unlock();
  }
  CompilingTurn(const CompilingTurn&) = delete;
  CompilingTurn& operator=(const CompilingTurn&) = delete;
  ~CompilingTurn() {
    lock_.lock();
    function_.leave();
    if (compiling_) compiling_->leave();
  }

 private:
  std::unique_lock<std::recursive_mutex>& lock_;
  Holder& function_;
  Holder* const compiling_;
};

class Callable::Impl {
 public:
  Impl(CompileOptions options, std::shared_ptr<torch::nn::Module> module)
      : options_(std::move(options)), module_(std::move(module)) {}

  std::optional<CallResult> call(const LeafList& leaves, UserCode& code);
  Explanation explain() const;
  CompileStats stats() const;

 private:
  std::optional<CallResult> call_in_fiber(const LeafList& leaves, UserCode& code);
  std::optional<CallResult> call_in_thread(const LeafList& leaves, UserCode& code);
  std::optional<CallResult> run_beside();
  Call begin(RankCache& cache, const LeafList& leaves, UserCode& code) const;
  Entry* find_ready(Call& call) const;
  std::unique_lock<std::recursive_mutex> lock() const;
  const std::shared_ptr<RankCache>& cache_of_this_rank();
  const RankCache* find_cache() const;
  CompileStats stats_of_cache() const;

  struct OfRank {
    std::uint64_t world = 0;  // distinguishes ranks with the same number in successive worlds
    std::shared_ptr<RankCache> cache;
  };

  const CompileOptions options_;
  const std::shared_ptr<torch::nn::Module> module_;
  std::map<int, OfRank> caches_;  // by rank; -1 outside of fibers
  // Outside of fibers; see CallingThreads.
  Holder changing_;              // the thread that may change the cache
  CompileStats before_change_;   // what other threads see of the cache meanwhile
  std::int64_t run_beside_ = 0;  // calls that ran eagerly because another thread held `changing_`
};

namespace {

int rank_or_none() { return exec::this_rank::is_fiber() ? exec::this_rank::rank() : -1; }

}  // namespace

const std::shared_ptr<RankCache>& Callable::Impl::cache_of_this_rank() {
  OfRank& own = caches_[rank_or_none()];
  const std::uint64_t world = exec::world_number();
  if (!own.cache || own.world != world) {
    own.cache = std::make_shared<RankCache>(options_);
    own.world = world;
  }
  return own.cache;
}

const RankCache* Callable::Impl::find_cache() const {
  const auto found = caches_.find(rank_or_none());
  return found == caches_.end() || found->second.world != exec::world_number() ? nullptr : found->second.cache.get();
}

std::optional<CallResult> Callable::Impl::call(const LeafList& leaves, UserCode& code) {
  // Inside another function's capture, this function's code is part of that capture.
  if (capture::FakeMode::current()) return std::nullopt;
  return exec::this_rank::is_fiber() ? call_in_fiber(leaves, code) : call_in_thread(leaves, code);
}

Call Callable::Impl::begin(RankCache& cache, const LeafList& leaves, UserCode& code) const {
  cache.entries.begin_call();
  Call call{options_, module_, cache, leaves, code, GlobalState::current()};
  call.state.types = &code.types();
  call.state.function = {code.function()};
  if (!module_) call.state.module_modes = module_modes();  // a module's own guards check its modes
  cache.agreement.begin_call();
  return call;
}

std::optional<CallResult> Callable::Impl::call_in_fiber(const LeafList& leaves, UserCode& code) {
  Call call = begin(*cache_of_this_rank(), leaves, code);
  Answer answer = CallAttempt(call).answer();
  if (auto* const served = std::get_if<CallResult>(&answer)) return std::move(*served);
  const auto* const by_graph = std::get_if<ByGraph>(&answer);
  if (by_graph == nullptr) return std::nullopt;
  Entry& entry = *by_graph->entry;
  return CallResult{entry.capture.frame, entry.run(leaves)};
}

// An entry that serves the call and whose graph can run at once, without a look at the code.
Entry* Callable::Impl::find_ready(Call& call) const {
  if (options_.guard_collectives || options_.verify == Verify::Always || hides_autograd()) return nullptr;
  Entry* const hit = call.cache.entries.find(call.leaves, call.state);
  if (hit == nullptr || hit->segments) return nullptr;
  return hit->verified || options_.verify == Verify::Never ? hit : nullptr;
}

// Another thread changes the cache. This one must not wait for it: the code that the other thread runs may wait for
// this thread.
std::optional<CallResult> Callable::Impl::run_beside() {
  if (options_.group) {
    throw CompileError(fmt::format(
        "'{}' is compiled with a group, and two threads call it at once. Then the ranks cannot agree on what they "
        "compile. Call it from one thread of each rank",
        options_.name));
  }
  ++run_beside_;
  return std::nullopt;
}

std::optional<CallResult> Callable::Impl::call_in_thread(const LeafList& leaves, UserCode& code) {
  CallingThreads& threads = CallingThreads::get();
  std::unique_lock lock(threads.mutex);
  if (changing_.is_other_thread()) return run_beside();
  const std::shared_ptr<RankCache> cache = cache_of_this_rank();
  Call call = begin(*cache, leaves, code);
  Answer answer;
  if (Entry* const ready = find_ready(call)) {
    answer = call.hit(*ready);
  } else if (!options_.group && threads.compiling.is_other_thread()) {
    answer = call.eager();
  } else {
    before_change_ = stats_of_cache();
    const CompilingTurn turn(lock, changing_, options_.group ? nullptr : &threads.compiling);
    answer = CallAttempt(call).answer();
  }
  if (auto* const served = std::get_if<CallResult>(&answer)) return std::move(*served);
  const auto* const by_graph = std::get_if<ByGraph>(&answer);
  if (by_graph == nullptr) return std::nullopt;
  Entry& entry = *by_graph->entry;
  std::vector<c10::IValue> inputs = entry.inputs.take(entry.capture.inputs, leaves);
  lock.unlock();
  CallResult result{entry.capture.frame, entry.run_graph(inputs)};
  lock.lock();
  entry.inputs.give_back(std::move(inputs), entry.capture.inputs);
  return result;
}

std::unique_lock<std::recursive_mutex> Callable::Impl::lock() const {
  if (exec::this_rank::is_fiber()) return {};
  return std::unique_lock(CallingThreads::get().mutex);
}

CompileStats Callable::Impl::stats_of_cache() const {
  CompileStats stats;
  if (const RankCache* cache = find_cache()) {
    stats = cache->entries.stats();
    cache->stored.add_to(stats);
  }
  return stats;
}

CompileStats Callable::Impl::stats() const {
  const auto locked = lock();
  CompileStats stats = changing_.is_other_thread() ? before_change_ : stats_of_cache();
  if (!exec::this_rank::is_fiber()) {
    stats.calls += run_beside_;
    stats.eager_calls += run_beside_;
  }
  return stats;
}

Explanation Callable::Impl::explain() const {
  const auto locked = lock();
  if (changing_.is_other_thread()) {
    throw CompileError(fmt::format(
        "'{}' is explained while another thread compiles it. Ask for the explanation when that call is over",
        options_.name));
  }
  Explanation explanation;
  explanation.function = options_.name;
  if (const RankCache* cache = find_cache()) {
    cache->entries.explain(explanation);
    explanation.stats = stats();
    explanation.cache_warnings = cache->stored.warnings();
  }
  return explanation;
}

Callable::Callable(CompileOptions options, std::shared_ptr<torch::nn::Module> module)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(module))) {}
Callable::~Callable() = default;

std::optional<CallResult> Callable::call(const LeafList& leaves, UserCode& code) { return impl_->call(leaves, code); }
Explanation Callable::explain() const { return impl_->explain(); }
CompileStats Callable::stats() const { return impl_->stats(); }

}  // namespace rehearse::compiler

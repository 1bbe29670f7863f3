// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/callable.h>

#include <cstdint>
#include <map>
#include <utility>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_number.h>

#include "compile/call_attempt.h"
#include "compile/guards/module_modes.h"

namespace rehearse::compiler {

class Callable::Impl {
 public:
  Impl(CompileOptions options, std::shared_ptr<torch::nn::Module> module)
      : options_(std::move(options)), module_(std::move(module)) {}

  std::optional<CallResult> call(const LeafList& leaves, UserCode& code);
  Explanation explain() const;
  CompileStats stats() const;

 private:
  RankCache& cache_of_this_rank();
  const RankCache* find_cache() const;

  struct OfRank {
    std::uint64_t world = 0;  // distinguishes ranks with the same number in successive worlds
    std::unique_ptr<RankCache> cache;
  };

  const CompileOptions options_;
  const std::shared_ptr<torch::nn::Module> module_;
  std::map<int, OfRank> caches_;  // by rank; -1 outside of fibers
};

namespace {

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

std::optional<CallResult> Callable::Impl::call(const LeafList& leaves, UserCode& code) {
  // Inside another function's capture, this function's code is part of that capture.
  if (capture::FakeMode::current()) return std::nullopt;
  RankCache& cache = cache_of_this_rank();
  cache.entries.begin_call();
  Call call{options_, module_, cache, leaves, code, GlobalState::current()};
  call.state.types = &code.types();
  if (!module_) call.state.module_modes = module_modes();  // a module's own guards check its modes
  cache.agreement.begin_call();
  Answer answer = CallAttempt(call).answer();
  if (auto* const served = std::get_if<CallResult>(&answer)) return std::move(*served);
  const auto* const by_graph = std::get_if<ByGraph>(&answer);
  if (by_graph == nullptr) return std::nullopt;
  Entry& entry = *by_graph->entry;
  return CallResult{entry.capture.frame, entry.run(leaves)};
}

CompileStats Callable::Impl::stats() const {
  const RankCache* cache = find_cache();
  if (cache == nullptr) return {};
  CompileStats stats = cache->entries.stats();
  cache->stored.add_to(stats);
  return stats;
}

Explanation Callable::Impl::explain() const {
  Explanation explanation;
  explanation.function = options_.name;
  if (const RankCache* cache = find_cache()) {
    cache->entries.explain(explanation);
    cache->stored.add_to(explanation.stats);
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

// SPDX-License-Identifier: BSD-3-Clause
#include "compile/call.h"

#include <utility>

#include <rehearse_internal/parallel/sharded_units.h>

#include "compile/partitions/eager_backend.h"

namespace rehearse::compiler {

CallView Call::view() {
  static const std::vector<std::string> none;
  if (sources.empty()) sources = code.sources(options.argument_names);
  const parallel::DdpBuckets* ddp = parallel::ActiveDdp::current();
  return {leaves, sources, module, ddp ? ddp->ignored : none, options.argument_names, state};
}

CallResult Call::run(const Capture& captured) const {
  return {captured.frame, by_operators(captured.module)(values_of(captured.inputs, leaves))};
}

PartitionOptions Call::parts() const {
  return {.buckets = options.optimize_ddp ? parallel::ActiveDdp::current() : nullptr,
          .units = parallel::ShardedUnits::current(),
          .pieces = {.check_backend = options.check_backend, .dump = &cache.dump, .cache = &cache.stored}};
}

Answer Call::hit(Entry& entry, std::optional<CallResult> served) {
  cache.entries.note_hit();
  cache.agreement.note_hit(entry.number);
  if (served) return std::move(*served);
  return ByGraph{&entry};
}

Answer Call::eager(std::optional<CallResult> served) {
  cache.entries.note_eager();
  cache.agreement.note_eager();
  if (served) return std::move(*served);
  return AsItIs{};
}

}  // namespace rehearse::compiler

// SPDX-License-Identifier: BSD-3-Clause
#include "compile/call.h"

#include <utility>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/parallel/sharded_units.h>

#include "compile/captures/fixed_marks.h"
#include "compile/partitions/eager_backend.h"
#include "compile/partitions/memory_classes.h"

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

Entry compile_entry(Call& call, Capture captured) {
  REHEARSE_CHECK(captured.module != nullptr && captured.refusal.empty(), call.options.name, captured.refusal);
  RankCache& cache = call.cache;
  PartitionOptions options = call.parts();
  if (captured.ddp && call.options.optimize_ddp) options.buckets = &*captured.ddp;
  const std::vector<c10::IValue> values = values_of(captured.inputs, call.leaves);
  const InputMemory memory = memory_of(values);
  const ShardedInputs sharded = sharded_inputs(options.units, values);
  CompiledPartitions parts =
      compile_partitions(captured.module, captured.shapes, *cache.backend, options, memory, sharded);
  if (MemoryClasses(*captured.module, memory).writes_to_inputs(*captured.module)) {
    captured.guards.set_memory(call.leaves);
  }
  if (parts.communicates) cache.agreement.note_communication();
  // Recording a backward may have added guards.
  captured.guards.renew_symbols();
  refuse_fixed_marks(call.leaves, captured.guards.symbols().positions(), *captured.shapes);
  Entry entry;
  entry.graph = std::move(parts.run);
  entry.explanation = {.graphs = std::move(parts.graphs),
                       .bucket_table = std::move(parts.bucket_table),
                       .split_warnings = std::move(parts.warnings),
                       .kept_by_reference = captured.kept_by_reference};
  entry.capture = std::move(captured);
  pass_compile_time_of(entry.explanation.graphs, options.pieces.cache);
  return entry;
}

}  // namespace rehearse::compiler

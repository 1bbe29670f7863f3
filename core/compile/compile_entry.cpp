// SPDX-License-Identifier: BSD-3-Clause
#include "compile/compile_entry.h"

#include <utility>

#include <rehearse_internal/exec/check.h>

#include "compile/captures/fixed_marks.h"
#include "compile/partitions/compile_partitions.h"
#include "compile/partitions/memory_classes.h"

namespace rehearse::compiler {
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

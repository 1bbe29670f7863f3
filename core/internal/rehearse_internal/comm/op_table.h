// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <torch/csrc/distributed/c10d/Work.hpp>

// The properties of each operation of c10d. Names, fingerprints, checks and fabrics read this one table. Only how the
// data moves and what it costs is code (fakes, sim/network).
namespace rehearse::comm {

enum class OpKind : std::uint8_t {
  copies,
  reduces,
  all_to_all,      // what two ranks exchange concerns only these two
  point_to_point,  // between two ranks
  parts            // consists of the operations in Operation::parts
};

enum class OpTensors : std::uint8_t { none, first_input, inputs, outputs };

// How much time a transfer takes, by the algorithms of real back ends. NetworkModel has the formulas.
enum class OpTime : std::uint8_t {
  one_message,
  up_and_down_a_tree,
  through_a_tree,
  twice_around_a_ring,   // the data of one rank
  inputs_around_a_ring,  // the inputs of all ranks
  pieces_around_a_ring,  // the data that one rank sends or receives, in pieces
  of_parts
};

struct OpRow {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  std::string_view name{};           // in c10d's profiling titles, without the back end
  std::string_view recorder_name{};  // its name for the flight recorder's analyzer; empty: the call's own name
  OpKind kind = OpKind::copies;
  OpTime time = OpTime::of_parts;
  // These tensors must be alike on all ranks in dtype, device and sizes (in all-to-alls: without sizes).
  OpTensors alike = OpTensors::none;
  // Back ends ignore the strides of the first of these tensors, and copy its memory as one block.
  OpTensors as_it_lies = OpTensors::none;
  bool own_sizes = false;  // some sizes of a call do not follow from those of its `alike` tensors
  bool has_root = false;   // one rank sends to all others, or receives from them
};

namespace op_table {

using c10d::OpType;
using enum OpKind;
using enum OpTime;
using Tensors = OpTensors;

inline constexpr std::array kRows{
    OpRow{OpType::BROADCAST, "broadcast", "", copies, through_a_tree, Tensors::inputs, Tensors::inputs, false, true},
    OpRow{OpType::ALLREDUCE, "allreduce", "all_reduce", reduces, twice_around_a_ring, Tensors::inputs, Tensors::inputs},
    OpRow{OpType::ALLREDUCE_COALESCED, "allreduce_coalesced", "", parts, of_parts},
    OpRow{OpType::REDUCE, "reduce", "", reduces, through_a_tree, Tensors::inputs, Tensors::inputs, false, true},
    OpRow{OpType::ALLGATHER, "allgather", "all_gather", copies, inputs_around_a_ring, Tensors::outputs, Tensors::none,
          true},
    OpRow{OpType::_ALLGATHER_BASE, "_allgather_base", "_all_gather_base", copies, inputs_around_a_ring, Tensors::inputs,
          Tensors::none, true},
    OpRow{OpType::ALLGATHER_COALESCED, "allgather_coalesced", "all_gather_into_tensor_coalesced", parts, of_parts,
          Tensors::none, Tensors::none, true},
    OpRow{OpType::GATHER, "gather", "", copies, through_a_tree, Tensors::inputs, Tensors::none, true, true},
    OpRow{OpType::SCATTER, "scatter", "", copies, through_a_tree, Tensors::outputs, Tensors::outputs, true, true},
    OpRow{OpType::REDUCE_SCATTER, "reduce_scatter", "", reduces, pieces_around_a_ring, Tensors::inputs,
          Tensors::outputs, true},
    OpRow{OpType::ALLTOALL_BASE, "alltoall_base", "all_to_all", all_to_all, pieces_around_a_ring, Tensors::inputs,
          Tensors::none, true},
    OpRow{OpType::ALLTOALL, "alltoall", "all_to_all", all_to_all, pieces_around_a_ring, Tensors::first_input,
          Tensors::none, true},
    OpRow{OpType::SEND, "send", "", point_to_point, one_message, Tensors::inputs},
    OpRow{OpType::RECV, "recv", "", point_to_point, one_message, Tensors::outputs},
    OpRow{OpType::RECVANYSOURCE, "recv_any_source", "", point_to_point, one_message, Tensors::outputs},
    OpRow{OpType::BARRIER, "barrier", "all_reduce_barrier", copies, up_and_down_a_tree},
    OpRow{OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", "", reduces, pieces_around_a_ring, Tensors::outputs,
          Tensors::inputs, true},
    OpRow{OpType::COALESCED, "coalesced", "", parts, of_parts, Tensors::none, Tensors::none, true},
    OpRow{OpType::_ALLREDUCE_SPARSE, "allreduce_sparse", "all_reduce", reduces, inputs_around_a_ring, Tensors::inputs},
};
inline constexpr OpRow kUnknown{OpType::UNKNOWN, "unknown", "", copies, of_parts, Tensors::inputs};

consteval bool rows_follow_enum() {
  for (std::size_t row = 0; row < kRows.size(); ++row) {
    if (static_cast<std::size_t>(kRows[row].type) != row || kRows[row].name.empty()) return false;
  }
  return kRows.size() == static_cast<std::size_t>(OpType::_ALLREDUCE_SPARSE) + 1;
}
static_assert(rows_follow_enum(), "an operation's row is at its c10d::OpType, and each has a row");

}  // namespace op_table

// Returns the row of OpType::UNKNOWN if the type has none.
constexpr const OpRow& op_row(c10d::OpType type) noexcept {
  const auto row = static_cast<std::size_t>(type);
  return row < op_table::kRows.size() ? op_table::kRows[row] : op_table::kUnknown;
}

// Whether the operation of that OpRow::name has a root.
constexpr bool has_root(std::string_view name) noexcept {
  for (const OpRow& row : op_table::kRows) {
    if (row.name == name) return row.has_root;
  }
  return false;
}

// Whether `has` is true for every operation except those of kind `parts`. For static_asserts beside code that needs a
// case for each operation.
template <class Has>
consteval bool all_ops(const Has& has) {
  for (const OpRow& row : op_table::kRows) {
    if (row.kind != OpKind::parts && !has(row)) return false;
  }
  return true;
}

}  // namespace rehearse::comm

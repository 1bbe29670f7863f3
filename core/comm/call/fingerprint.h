// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/comm/signature.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// Hash of everything on which all ranks of a collective must agree, except for the payload's name (see same_payload()).
// Independent of addresses, because it is part of a run's identity.
std::uint64_t agreement_hash(const Operation& call, std::uint64_t label_hash);

// Hash of the whole call, including the sizes on this rank and the splits. Calls with different Signatures have
// different hashes. `agreement`: the call's agreement_hash().
std::uint64_t signature_hash(const Operation& call, std::uint64_t agreement);

std::uint64_t text_hash(std::string_view text) noexcept;

Signature signature_of(const Operation& call);

// Whether the payloads of two calls have the same name. A payload without a name matches every name.
inline bool same_payload(const Operation& a, const Operation& b) noexcept {
  return a.payload == b.payload || a.payload == nullptr || b.payload == nullptr;
}

// `allreduce(sum, float32[3, 4], cpu) label="fc1.weight"`.
std::string fingerprint_text(const Operation& call);

// The fields in which two calls of a collective differ. Never empty: if no field differs, returns the whole calls as
// one field.
std::vector<Mismatch::Field> differences(const Operation& first, const Operation& second);

// The fields in which a send and its receive do not fit together; empty: they fit. `shorter_fits`: see
// Fabric::takes_shorter_messages().
std::vector<Mismatch::Field> pair_differences(const Operation& send, const Operation& recv, bool shorter_fits);

// The parts of a call or, if it has none, the call itself.
std::span<const Operation> parts_of(const Operation& call) noexcept;

inline bool is_alltoall(c10d::OpType type) noexcept { return op_row(type).kind == OpKind::all_to_all; }

// The tensors of a call that must be alike on all ranks: those that OpRow::alike selects.
std::span<const at::Tensor> shared_tensors(const Operation& call) noexcept;

// The number of sparse dimensions; 0: the tensor is dense.
std::int64_t sparse_dims(const at::Tensor& tensor) noexcept;

// The factor of PREMUL_SUM. nullopt if the call has none, if the factor is complex, or if it is on a device, where
// reading it would block.
std::optional<double> premul_factor(const Operation& call);

// How many elements an all-to-all sends to `peer`, or expects from it.
std::int64_t elements_to(const Operation& call, int peer) noexcept;
std::int64_t elements_from(const Operation& call, int peer) noexcept;

// Whether the call has the number of elements that an all-to-all sends to each rank. Calls read from dumps may lack
// these numbers.
bool knows_splits(const Operation& call) noexcept;

// The number of elements that the rank sends to and expects from every rank, if all these numbers are equal. -1 if they
// differ or are unknown.
std::int64_t even_split(const Operation& call) noexcept;

// "float32": the name in Python.
std::string dtype_text(at::ScalarType type);

}  // namespace rehearse::comm

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

// Hash of what all ranks of a collective must agree on. Does not depend on addresses: it is part of a run's identity.
std::uint64_t agreement_hash(const Operation& call, std::uint64_t label_hash) noexcept;

// The same over everything a call is (sizes on this rank, splits): equal for calls with the same Signature.
std::uint64_t signature_hash(const Operation& call, std::uint64_t agreement) noexcept;

std::uint64_t text_hash(std::string_view text) noexcept;

Signature signature_of(const Operation& call);

// Do the tensors go by the same name? One without a name fits all.
inline bool same_payload(const Operation& a, const Operation& b) noexcept {
  return a.payload == b.payload || a.payload == nullptr || b.payload == nullptr;
}

// `allreduce(sum, float32[3, 4], cpu) label="fc1.weight"`.
std::string fingerprint_text(const Operation& call);

// What differs between two calls that should agree; never empty for calls with different hashes.
std::vector<Mismatch::Field> differences(const Operation& first, const Operation& second);

// A send and the receive that it meets. `shorter_fits`: see Fabric::takes_shorter_messages().
std::vector<Mismatch::Field> pair_differences(const Operation& send, const Operation& recv, bool shorter_fits);

// What the parts of a call and their tensors are, or the call itself where it has none.
std::span<const Operation> parts_of(const Operation& call) noexcept;

inline bool is_alltoall(c10d::OpType type) noexcept { return op_row(type).kind == OpKind::all_to_all; }

// The tensors of a call that must be alike on all ranks. Lists in which tensor j belongs to rank j count as a whole.
std::span<const at::Tensor> shared_tensors(const Operation& call) noexcept;

// How many of its dimensions have indices; 0: it is dense.
std::int64_t sparse_dims(const at::Tensor& tensor) noexcept;

// Empty: there is none, or it is on a device, where reading it would wait.
std::optional<double> premul_factor(const Operation& call);

// How many elements an all-to-all sends to, or expects from, `peer`.
std::int64_t elements_to(const Operation& call, int peer) noexcept;
std::int64_t elements_from(const Operation& call, int peer) noexcept;

// Does the call say what an all-to-all sends to each rank? A call that is read from a recording may not.
bool knows_splits(const Operation& call) noexcept;

// What every rank sends to and expects from every rank, when that is one number; else -1, also where it is not known.
std::int64_t even_split(const Operation& call) noexcept;

// "float32": the name that Python users know.
std::string dtype_text(at::ScalarType type);

}  // namespace rehearse::comm

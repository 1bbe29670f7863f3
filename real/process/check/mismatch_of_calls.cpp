// SPDX-License-Identifier: BSD-3-Clause
#include "mismatch_of_calls.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/comm/title.h>
#include "comm/call/fingerprint.h"
#include "comm/call/layout.h"

namespace rehearse::real {
namespace {

using comm::Mismatch;

// Ranks that made the same call.
struct Party {
  std::string text;
  std::vector<int> ranks;  // of the world, ascending
  std::size_t call = 0;    // of one of them
};

// In order: the majority, then by the lowest rank.
Mismatch of_parties(std::vector<Party>& parties, std::size_t ranks) {
  const auto is_majority = [&](const Party& party) { return party.ranks.size() * 2 > ranks; };
  std::sort(parties.begin(), parties.end(), [&](const Party& a, const Party& b) {
    if (is_majority(a) != is_majority(b)) return is_majority(a);
    return a.ranks.front() < b.ranks.front();
  });
  const auto side = [](const Party& party) { return Mismatch::Side{party.ranks.front(), party.text, {}, party.ranks}; };
  Mismatch mismatch;
  mismatch.has_majority = is_majority(parties[0]);
  mismatch.first = side(parties[0]);
  mismatch.second = side(parties[1]);
  for (std::size_t i = 2; i < parties.size(); ++i) mismatch.others.push_back(side(parties[i]));
  return mismatch;
}

void take_side(std::vector<Party>& parties, std::vector<Party>::iterator party, Party own) {
  if (party == parties.end()) return parties.push_back(std::move(own));
  party->ranks.insert(std::lower_bound(party->ranks.begin(), party->ranks.end(), own.ranks.front()), own.ranks.front());
}

Mismatch of_two(const OpenCall& one, const OpenCall& other, const comm::GroupIdentity& group, Mismatch::Field field) {
  Mismatch mismatch;
  mismatch.group = group.name;
  mismatch.sequence = one.sequence;
  const bool in_order = group.global_rank(one.rank) < group.global_rank(other.rank);
  const auto& first = in_order ? one : other;
  const auto& second = in_order ? other : one;
  mismatch.first = comm::side_of(first.operation, first.rank, group, {});
  mismatch.second = comm::side_of(second.operation, second.rank, group, {});
  if (!in_order) std::swap(field.first, field.second);
  mismatch.fields = {std::move(field)};
  return mismatch;
}

// Any tensor with elements: a call's own are of one memory format.
const at::Tensor* sample_of(const comm::Operation& call) {
  for (const auto* const list : {&call.inputs, &call.outputs}) {
    for (const auto& tensor : *list) {
      if (tensor.numel() > 0) return &tensor;
    }
  }
  return nullptr;
}

std::optional<Mismatch> mismatch_of_edge(const OpenCall& sender, const OpenCall& receiver, std::size_t part,
                                         const comm::GroupIdentity& group) {
  const auto sent = comm::elements_to(comm::parts_of(sender.operation)[part], receiver.rank);
  const auto expected = comm::elements_from(comm::parts_of(receiver.operation)[part], sender.rank);
  if (sent == expected) return std::nullopt;
  return of_two(
      sender, receiver, group,
      {fmt::format("splits of rank {} to rank {}", group.global_rank(sender.rank), group.global_rank(receiver.rank)),
       fmt::format("sends {}", sent), fmt::format("expects {}", expected)});
}

std::string members_text(const std::vector<int>& ranks) { return fmt::format("{{{}}}", fmt::join(ranks, ", ")); }

}  // namespace

bool agree(const OpenCall& one, const OpenCall& other) {
  return one.fingerprint == other.fingerprint && comm::same_payload(one.operation, other.operation);
}

Mismatch mismatch_of_collective(const OpenCalls& calls, const comm::GroupIdentity& group) {
  std::vector<Party> parties;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto same = [&](const Party& party) { return agree(*calls[party.call], *calls[i]); };
    const auto side = comm::side_of(calls[i]->operation, calls[i]->rank, group, {});
    take_side(parties, std::find_if(parties.begin(), parties.end(), same), {side.fingerprint, {side.rank}, i});
  }
  auto mismatch = of_parties(parties, group.ranks.size());
  mismatch.group = group.name;
  mismatch.sequence = calls.front()->sequence;
  mismatch.fields = comm::differences(calls[parties[0].call]->operation, calls[parties[1].call]->operation);
  return mismatch;
}

std::optional<Mismatch> mismatch_of_edges(const OpenCalls& calls, const comm::GroupIdentity& group) {
  const auto parts = comm::parts_of(calls.front()->operation).size();
  for (std::size_t part = 0; part < parts; ++part) {
    if (!comm::is_alltoall(comm::parts_of(calls.front()->operation)[part].type)) continue;
    for (const auto* const sender : calls) {
      for (const auto* const receiver : calls) {
        if (auto found = mismatch_of_edge(*sender, *receiver, part, group)) return found;
      }
    }
  }
  if (!comm::is_alltoall(calls.front()->operation.type)) return std::nullopt;
  const OpenCall* first = nullptr;
  for (const auto* const call : calls) {
    const auto* const sample = sample_of(call->operation);
    if (sample == nullptr) continue;
    if (first == nullptr) first = call;
    const auto* const expected = sample_of(first->operation);
    if (comm::same_format(*expected, *sample)) continue;
    return of_two(*first, *call, group, {"strides", comm::strides_text(*expected), comm::strides_text(*sample)});
  }
  return std::nullopt;
}

std::optional<Mismatch> mismatch_of_pair(const OpenCall& send, const OpenCall& recv, bool send_came_last,
                                         const comm::GroupIdentity& group) {
  const bool by_gloo = recv.operation.outputs[0].is_cpu();  // else by NCCL, which needs equal sizes
  auto fields = comm::pair_differences(send.operation, recv.operation, by_gloo);
  if (fields.empty()) return std::nullopt;
  const auto& met = send_came_last ? recv : send;
  const auto& last = send_came_last ? send : recv;
  Mismatch mismatch;
  mismatch.kind = Mismatch::Kind::point_to_point;
  mismatch.group = group.name;
  mismatch.sequence = last.sequence;
  mismatch.first = comm::side_of(met.operation, met.rank, group, {});
  mismatch.second = comm::side_of(last.operation, last.rank, group, {});
  for (auto& field : fields) {
    if (send_came_last) std::swap(field.first, field.second);
  }
  mismatch.fields = std::move(fields);
  return mismatch;
}

std::optional<Mismatch> mismatch_of_groups(const std::vector<GroupCall>& calls, int size) {
  std::vector<Party> parties;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto& made = calls[i].made;
    const auto same = [&](const Party& party) {
      const auto& other = calls[party.call].made;
      return other.ranks == made.ranks && other.given_name == made.given_name;
    };
    auto text = members_text(made.ranks) + (made.given_name.empty() ? "" : fmt::format(" \"{}\"", made.given_name));
    take_side(parties, std::find_if(parties.begin(), parties.end(), same), {std::move(text), {calls[i].rank}, i});
  }
  if (parties.size() < 2) return std::nullopt;
  auto mismatch = of_parties(parties, static_cast<std::size_t>(size));
  const auto& first = calls[parties[0].call].made;
  const auto& second = calls[parties[1].call].made;
  mismatch.kind = Mismatch::Kind::new_group;
  mismatch.group = first.given_name;
  mismatch.sequence = first.number;
  if (first.ranks != second.ranks) {
    mismatch.fields.push_back({"ranks", members_text(first.ranks), members_text(second.ranks)});
  }
  const auto or_none = [](const std::string& name) { return name.empty() ? std::string("none") : name; };
  if (first.given_name != second.given_name) {
    mismatch.fields.push_back({"name", or_none(first.given_name), or_none(second.given_name)});
  }
  return mismatch;
}

}  // namespace rehearse::real

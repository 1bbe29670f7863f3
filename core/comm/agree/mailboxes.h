// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/agree/wording.h"

namespace rehearse::comm {

// The sends and receives of a group that are not matched yet. A send matches the oldest receive of its peer that
// expects it. A receive matches the oldest send that its source has made with the same tag. A receive from any source
// may take the oldest such send of any rank, and the caller chooses the rank. Ranks are ranks in the group. `Call` is
// the caller's data for each send and receive.
template <class Call>
class Mailboxes {
 public:
  struct Letter : Envelope {
    Call call;
  };

  explicit Mailboxes(std::size_t ranks) : boxes_(ranks) {}

  // Removes and returns the receive of `receiver` that the send matches; nullopt: there is none.
  std::optional<Letter> take_receive(int receiver, Envelope send) {
    return take(box(receiver).receives, [send](const Envelope& recv) { return fits(send, recv); });
  }
  void keep_send(int receiver, Envelope send, Call call) { box(receiver).sends.push_back({send, std::move(call)}); }

  // The ranks whose sends a receive of `receiver` may take, ordered by the age of each rank's oldest send.
  std::vector<int> sources(int receiver, Envelope recv) const {
    std::vector<int> found;
    for (const auto& send : box(receiver).sends) {
      if (fits(send, recv) && std::ranges::find(found, send.source) == found.end()) found.push_back(send.source);
    }
    return found;
  }
  // Removes and returns the oldest send of `source` with this tag; nullopt: there is none.
  std::optional<Letter> take_send(int receiver, int source, int tag) {
    return take(box(receiver).sends,
                [source, tag](const Envelope& send) { return send.source == source && send.tag == tag; });
  }
  void keep_receive(int receiver, Envelope recv, Call call) {
    box(receiver).receives.push_back({recv, std::move(call)});
  }

  // Text for reports on a send or receive that is not matched yet: describes a call that almost matches it. Empty if
  // there is none.
  std::string near_miss(const Operation& call, int rank, const GroupIdentity& group) const {
    const bool is_send = call.type == c10d::OpType::SEND;
    const auto& mine = box(is_send ? call.peer : rank);
    const auto& others = is_send ? mine.receives : mine.sends;
    const std::vector<Envelope> envelopes(others.begin(), others.end());
    return comm::near_miss(call, rank, envelopes, group);
  }

  // Calls visit(letter, is_send), in order of receivers; for each receiver, first for the sends.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (const auto& box : boxes_) {
      for (const auto& letter : box.sends) visit(letter, true);
      for (const auto& letter : box.receives) visit(letter, false);
    }
  }

  template <class Predicate>
  void erase_if(const Predicate& goes) {
    const auto erase = [&](Letters& letters) {
      std::erase_if(letters, [&](const Letter& letter) { return goes(letter.call); });
    };
    for (auto& box : boxes_) {
      erase(box.sends);
      erase(box.receives);
    }
  }

 private:
  using Letters = std::vector<Letter>;  // oldest first

  // The messages to one rank, and its receives. No send here matches a receive here.
  struct Box {
    Letters sends, receives;
  };

  static bool fits(const Envelope& send, const Envelope& recv) {
    return send.tag == recv.tag && (recv.source == send.source || recv.source < 0);
  }

  template <class Predicate>
  static std::optional<Letter> take(Letters& letters, const Predicate& fits) {
    const auto found = std::ranges::find_if(letters, fits);
    if (found == letters.end()) return std::nullopt;
    std::optional<Letter> taken(std::move(*found));
    letters.erase(found);
    return taken;
  }

  Box& box(int receiver) { return boxes_[static_cast<std::size_t>(receiver)]; }
  const Box& box(int receiver) const { return boxes_[static_cast<std::size_t>(receiver)]; }

  std::vector<Box> boxes_;  // by receiver
};

}  // namespace rehearse::comm

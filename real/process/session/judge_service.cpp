// SPDX-License-Identifier: BSD-3-Clause
#include "judge_service.h"

#include <algorithm>

#include <c10/util/Exception.h>
#include <rehearse/exec/machine_time.h>

namespace rehearse::real {

VirtualDuration time_between_beats(VirtualDuration patience) {
  return std::clamp<VirtualDuration>(patience / 10, std::chrono::milliseconds(50), std::chrono::seconds(1));
}

JudgeService::JudgeService(c10d::Store& store, int ranks, VirtualDuration patience, VirtualDuration began)
    : mail_(store),
      patience_(patience),
      began_(began),
      ranks_(ranks),
      judge_(ranks, patience,
             [this](int rank, const ToRank& message) { mail_.send(Mail::to_rank(rank), packed(message)); }),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void JudgeService::serve(const std::stop_token& stop) {
  const auto beat = time_between_beats(patience_);
  VirtualTime next_beat{};
  try {
    while (!judge_.over() && !stop.stop_requested()) {
      const auto message = mail_.receive(Mail::to_judge(), std::chrono::ceil<std::chrono::milliseconds>(beat / 2));
      const VirtualTime now{exec::machine_time() - began_};
      if (message) judge_.hear(unpacked<FromRank>(*message), now);
      judge_.look(now);
      if (now < next_beat || judge_.over()) continue;
      for (int rank = 0; rank < ranks_; ++rank) mail_.send(Mail::to_rank(rank), packed(ToRank(StillAlive{})));
      next_beat = now + beat;
    }
  } catch (const c10::Error&) {
    // The store is gone: each rank sees that for itself.
  }
}

}  // namespace rehearse::real

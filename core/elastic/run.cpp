// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/elastic/run.h>

#include <exception>
#include <optional>
#include <string_view>
#include <typeinfo>
#include <utility>

#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/job/rank_context.h>

#include "run_name.h"

namespace rehearse::elastic {
namespace {

// Thrown by Round::let_in_waiting().
struct RoundIsOver {};

enum class Try { done, lost, over };

// How many runs a rank's incarnation has finished. A run that threw does not count: the next call of run() returns to
// the same rounds.
struct Runs {
  int over = 0;
};

// c10d's back end lets gloo's exceptions through unchanged. LibTorch does not contain the headers of their classes, so
// this function recognises them by gloo's namespace.
bool is_of_a_back_end(const std::exception& error) {
  return dynamic_cast<const c10::DistBackendError*>(&error) != nullptr ||
         std::string_view(typeid(error).name()).starts_with("N4gloo");
}

Try attempt(const std::function<void()>& body, bool is_last) {
  try {
    body();
    return Try::done;
  } catch (const RoundIsOver&) {
    return Try::over;
  } catch (const MismatchError&) {
    throw;  // an error in the program, which would happen again
  } catch (const std::exception& error) {
    if (is_last || !is_of_a_back_end(error)) throw;
    return Try::lost;
  }
}

}  // namespace

Round::Round(RankContext& context, Rendezvous& rendezvous, Members members, int restart_count, int run)
    : context_(context),
      rendezvous_(rendezvous),
      members_(std::move(members)),
      restart_count_(restart_count),
      run_(run),
      group_(context.new_local_group(members_.ranks, name_in_run(run, fmt::format("round {}", members_.round)))) {}

void Round::let_in_waiting() {
  auto waiting = at::full({1}, group_.rank() == 0 ? rendezvous_.num_waiting(number()) : 0, at::kInt);
  group_.broadcast(waiting)->wait();
  if (waiting.item<int>() > 0) throw RoundIsOver{};
}

bool run(RankContext& context, const std::function<void(Round&)>& body, const Options& options) {
  const int number = context.local<Runs>().over + 1;
  auto rendezvous_options = options.rendezvous;
  rendezvous_options.name = name_in_run(number, rendezvous_options.name);
  Rendezvous rendezvous(context, rendezvous_options);
  bool is_at_the_end = false;
  for (int restart_count = 0;;) {
    Members members;
    try {
      members = rendezvous.next();
    } catch (const RendezvousClosedError&) {
      ++context.local<Runs>().over;
      return is_at_the_end;  // true: this rank reached the barrier, and the others passed it
    }
    is_at_the_end = false;
    std::optional<Round> round;
    const auto run_round = [&] {
      round.emplace(context, rendezvous, std::move(members), restart_count, number);
      body(*round);
      is_at_the_end = true;
      round->group().barrier()->wait();
    };
    const auto outcome = attempt(run_round, restart_count >= options.max_restarts);
    if (outcome == Try::done) {
      rendezvous.close();
      ++context.local<Runs>().over;
      return true;
    }
    if (outcome == Try::lost) ++restart_count;
    if (round) round->group()->abort();
  }
}

}  // namespace rehearse::elastic

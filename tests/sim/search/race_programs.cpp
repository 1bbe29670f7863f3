// SPDX-License-Identifier: BSD-3-Clause
#include "race_programs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <thread>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/serialize.h>

namespace rehearse_test {
namespace {

using namespace std::chrono_literals;
using rehearse::RankContext;
using rehearse::World;
using rehearse::WorldOptions;
using rehearse::sim::Strategy;

void set(RankContext& ctx, const std::string& key, const std::string& value) {
  ctx.store()->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}
std::string get(RankContext& ctx, const std::string& key) {
  const auto value = ctx.store()->get(key);
  return {value.begin(), value.end()};
}
bool check(RankContext& ctx, const std::string& key) { return ctx.store()->check({key}); }

// Rank 0 saves a file for all and removes it again; the readers may be late.
void removes_file(RankContext& ctx, bool waits) {
  const auto file = ctx.shared_folder() / "model.pt";
  if (ctx.rank() == 0) torch::save(at::ones({4}), file.string());
  ctx.group().barrier()->wait();
  at::Tensor loaded;
  torch::load(loaded, file.string());
  if (waits) ctx.group().barrier()->wait();
  if (ctx.rank() == 0) std::filesystem::remove(file);
  ctx.group().allreduce(loaded)->wait();
}

void removes_keys(RankContext& ctx, bool waits) {
  constexpr int kParts = 20;
  const auto key = [](int part) { return "part/" + std::to_string(part); };
  for (int part = 0; ctx.rank() == 0 && part < kParts; ++part) set(ctx, key(part), "x");
  ctx.group().barrier()->wait();
  for (int part = 0; part < kParts; ++part) get(ctx, key(part));
  if (waits) ctx.group().barrier()->wait();
  for (int part = 0; ctx.rank() == 0 && part < kParts; ++part) ctx.store()->deleteKey(key(part));
  ctx.group().barrier()->wait();
}

void saves_into_missing_folder(RankContext& ctx) {
  const auto folder = ctx.shared_folder() / "step_100";
  if (ctx.rank() == 0) std::filesystem::create_directories(folder);
  torch::save(at::ones({4}), (folder / ("optim_" + std::to_string(ctx.rank()) + ".pt")).string());
  ctx.group().barrier()->wait();
}

void expects_key_after_collective(RankContext& ctx) {
  const auto pair = ctx.new_group({1, 2});
  if (ctx.rank() == 0) return set(ctx, "x", "1");
  auto tensor = at::ones({8});
  pair.allreduce(tensor)->wait();
  if (ctx.rank() == 1) ctx.expect(check(ctx, "x"), "x is there");
}

// Rank 0 serves parameters. Without a version, workers may compute with parameters of different steps.
void serves_parameters(RankContext& ctx, bool has_versions) {
  constexpr int kSteps = 30;
  ctx.store()->setTimeout(5s);
  std::vector<int> members(static_cast<std::size_t>(ctx.size()) - 1);
  std::iota(members.begin(), members.end(), 1);
  const auto workers = ctx.new_group(members);
  const auto weight_of = [&](int step) { return has_versions ? "w/" + std::to_string(step) : std::string("w"); };
  const auto gradient_of = [](int step, int rank) { return "g/" + std::to_string(step) + "/" + std::to_string(rank); };
  if (ctx.rank() == 0) {
    double weight = 8000;
    set(ctx, weight_of(0), std::to_string(weight));
    for (int step = 0; step < kSteps; ++step) {
      double gradient = 0;
      for (int rank = 1; rank < ctx.size(); ++rank) gradient += std::stod(get(ctx, gradient_of(step, rank)));
      weight -= 0.05 * gradient / (ctx.size() - 1);
      set(ctx, weight_of(step + 1), std::to_string(weight));
    }
  }
  for (int step = 0; ctx.rank() > 0 && step < kSteps; ++step) {
    const double weight = std::stod(get(ctx, weight_of(step)));
    set(ctx, gradient_of(step, ctx.rank()), std::to_string(weight));
    auto mean = at::full({1}, weight, at::kDouble);
    workers.allreduce(mean)->wait();
    ctx.expect(std::abs(mean.item<double>() / (ctx.size() - 1) - weight) < 1e-6, "workers have the same parameters");
  }
  ctx.group().barrier()->wait();
}

void elects_leader(RankContext& ctx) {
  int leader = ctx.rank();
  if (check(ctx, "leader")) {
    leader = std::stoi(get(ctx, "leader"));
  } else {
    set(ctx, "leader", std::to_string(leader));
  }
  auto sum = at::full({1}, static_cast<double>(leader), at::kDouble);
  ctx.group().allreduce(sum)->wait();
  ctx.expect(sum.item<double>() == static_cast<double>(ctx.size() * leader), "one leader");
}

// `between`: rank 1 does something else between its two looks.
void looks_twice(RankContext& ctx, bool between) {
  if (ctx.rank() == 0) {
    set(ctx, "a", "1");
    return set(ctx, "b", "1");
  }
  const bool a = check(ctx, "a");
  if (between) set(ctx, "mine", "1");
  const bool b = check(ctx, "b");
  ctx.expect(!a || b, "b is there if a is");
}

// For each rank, the positions of its steps among all steps, from 1.
std::vector<std::vector<std::int64_t>> places;

World::Body steps(int count) {
  return [count](RankContext& ctx) {
    auto& own = places[static_cast<std::size_t>(ctx.rank())];
    for (int step = 0; step < count; ++step) own.push_back(ctx.store()->add("steps", 1));
  };
}

bool is_between_steps(std::size_t outer, std::size_t inner, std::size_t first, std::size_t last) {
  for (std::size_t step = first; step < last; ++step) {
    if (places[outer][step] < places[inner].front() && places[inner].back() < places[outer][step + 1]) return true;
  }
  return false;
}

bool shows_depth_3() {
  for (std::size_t a = 4; a < 8; ++a) {
    for (std::size_t b = 4; b < 8; ++b) {
      if (places[0][a] < places[1].front() && places[1][b] < places[0][a + 1] && places[0].back() < places[1][b + 1])
        return true;
    }
  }
  return false;
}

// Waits with limits that a rank which computes for some milliseconds does not reach.
void waits_with_timeouts(RankContext& ctx) {
  ctx.store()->setTimeout(5ms);
  for (int step = 0; step < 20; ++step) {
    auto tensor = at::ones({8});
    ctx.group().allreduce(tensor)->wait();
    const auto key = "k" + std::to_string(step);
    if (ctx.rank() == step % ctx.size()) set(ctx, key, "1");
    get(ctx, key);
  }
}

// Rank 1 needs four pauses for what rank 0 waits for, and rank 0's limit is a little longer.
void waits_longer_than_pauses(RankContext& ctx) {
  if (ctx.rank() == 1) {
    for (int pause = 0; pause < 4; ++pause) std::this_thread::sleep_for(1ms);
    return set(ctx, "done", "1");
  }
  if (ctx.rank() > 1) {
    for (int pause = 0; pause < 7; ++pause) std::this_thread::sleep_for(700us);
    return;
  }
  ctx.store()->wait({"done"}, 5ms);
}

void polls_a_flag(RankContext& ctx) {
  if (ctx.rank() == 1) return set(ctx, "flag", "1");
  int looks = 0;
  while (looks < 50 && !check(ctx, "flag")) {
    std::this_thread::sleep_for(1ms);
    ++looks;
  }
  ctx.expect(looks < 50, "the flag comes within 50 ms");
}

// Rank 0 gives a rank up whose heartbeat is older than 50 ms; the others beat every 10 ms.
void watches_heartbeats(RankContext& ctx) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  if (ctx.rank() > 0) {
    for (int beat = 0; beat < 10; ++beat) {
      set(ctx, "beat/" + std::to_string(ctx.rank()), std::to_string(beat));
      std::this_thread::sleep_for(10ms);
    }
    return;
  }
  std::vector<std::string> last(static_cast<std::size_t>(ctx.size()));
  std::vector<std::chrono::steady_clock::time_point> since(last.size(), now());
  while (std::any_of(last.begin() + 1, last.end(), [](const auto& each) { return each != "9"; })) {
    for (std::size_t rank = 1; rank < last.size(); ++rank) {
      const auto key = "beat/" + std::to_string(rank);
      const auto beat = check(ctx, key) ? get(ctx, key) : "";
      if (beat != last[rank]) since[rank] = now();
      last[rank] = beat;
      ctx.expect(now() - since[rank] < 50ms, "the rank is alive");
    }
    std::this_thread::sleep_for(5ms);
  }
}

// A thread makes three things with pauses; the rank waits for each with a limit.
void waits_for_a_thread(RankContext& ctx) {
  std::mutex mutex;
  std::condition_variable made;
  int count = 0;
  std::thread maker([&] {
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(3ms);
      const std::lock_guard lock(mutex);
      ++count;
      made.notify_one();
    }
  });
  for (int i = 1; i <= 3; ++i) {
    std::unique_lock lock(mutex);
    ctx.expect(made.wait_for(lock, 4ms, [&] { return count >= i; }), "the next thing is there");
  }
  maker.join();
  ctx.group().barrier()->wait();
}

// Looks at a work until it has ended, and gives up after a while.
void polls_a_work(RankContext& ctx) {
  for (int step = 0; step < 5; ++step) {
    auto tensor = at::ones({64});
    if (ctx.rank() == step % ctx.size()) ctx.compute(2ms);
    const auto work = ctx.group().allreduce(tensor);
    int looks = 0;
    while (!work->isCompleted() && looks < 40) {
      std::this_thread::sleep_for(500us);
      ++looks;
    }
    ctx.expect(looks < 40, "the work ends within 20 ms");
    work->wait();
  }
}

// Each rank's watchdog expects a step in each 40 ms; a step takes 5 ms.
void has_a_watchdog(RankContext& ctx) {
  std::atomic<int> steps{0};
  std::atomic<bool> done{false}, late{false};
  std::thread watchdog([&] {
    while (!done) {
      const int before = steps;
      std::this_thread::sleep_for(40ms);
      if (steps == before && !done) late = true;
    }
  });
  for (; steps < 20; ++steps) {
    ctx.compute(5ms);
    auto tensor = at::ones({8});
    ctx.group().allreduce(tensor)->wait(std::chrono::milliseconds(20));
  }
  done = true;
  watchdog.join();
  ctx.expect(!late, "no step takes 40 ms");
}

}  // namespace

const std::vector<RaceProgram>& race_programs() {
  static const std::vector<RaceProgram> programs = {
      {"removed file", 3, [](RankContext& ctx) { removes_file(ctx, false); }},
      {"removed keys", 3, [](RankContext& ctx) { removes_keys(ctx, false); }},
      {"missing folder", 3, saves_into_missing_folder},
      {"key after a collective", 3, expects_key_after_collective},
      {"parameter server", 4, [](RankContext& ctx) { serves_parameters(ctx, false); }},
      {"leader race", 3, elects_leader},
      {"two looks", 2, [](RankContext& ctx) { looks_twice(ctx, false); }},
      {"look, set, look", 2, [](RankContext& ctx) { looks_twice(ctx, true); }},
      {"order of depth 1", 4, steps(25), [] { return places[3].back() < places[0].front(); }},
      {"order of depth 2", 4, steps(25), [] { return is_between_steps(0, 1, 10, 15); }},
      {"order of depth 3", 2, steps(15), shows_depth_3},
      {"short order of depth 2", 2, steps(2),
       [] { return places[0][0] < places[1][1] && places[1][0] < places[0][1]; }},
      {"file is removed after a barrier", 3, [](RankContext& ctx) { removes_file(ctx, true); }, {}, true},
      {"keys are removed after a barrier", 3, [](RankContext& ctx) { removes_keys(ctx, true); }, {}, true},
      {"parameter server with versions", 4, [](RankContext& ctx) { serves_parameters(ctx, true); }, {}, true},
      {"timeouts of 5 ms", 3, waits_with_timeouts, {}, true},
      {"timeout a little longer than pauses", 4, waits_longer_than_pauses, {}, true},
      {"poll for 50 ms", 2, polls_a_flag, {}, true},
      {"heartbeats", 3, watches_heartbeats, {}, true},
      {"a thread, waited for with a limit", 2, waits_for_a_thread, {}, true},
      {"poll of a work for 20 ms", 3, polls_a_work, {}, true},
      {"watchdog of 40 ms", 3, has_a_watchdog, {}, true}};
  return programs;
}

std::string failure_of(const RaceProgram& program, std::uint64_t seed, const Strategy& strategy) {
  WorldOptions options{.ranks = program.ranks, .seed = seed};
  options.explain_failures = options.explain_remarks = false;
  rehearse::sim::take(strategy, options);
  places.assign(static_cast<std::size_t>(program.ranks), {});
  World world(options);
  const auto report = world.run(program.body);
  if (report.verdict != rehearse::Verdict::ok) return report.headline;
  return program.shows && program.shows() ? "the order shows" : "";
}

rehearse::sim::ProbedSteps probe(const RaceProgram& program) {
  const auto steps_with = [&](bool preempt) {
    WorldOptions options{.ranks = program.ranks};
    options.explain_failures = options.explain_remarks = false;
    rehearse::sim::take({.preempt = preempt, .patience = rehearse::sim::kPatience}, options);
    places.assign(static_cast<std::size_t>(program.ranks), {});
    World world(options);
    world.run(program.body);
    const auto& decisions = world.decisions().decisions();
    return static_cast<std::uint64_t>(std::count_if(decisions.begin(), decisions.end(), [](const auto& decision) {
      return decision.kind == rehearse::ChoiceKind::next_fiber;
    }));
  };
  return {steps_with(false), steps_with(true)};
}

int found_by_sweep(const RaceProgram& program, std::uint64_t first, std::uint64_t last,
                   std::vector<std::string>* failures) {
  const auto probed = probe(program);
  int count = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    WorldOptions options;
    options.seed = seed;
    const auto failure = failure_of(program, seed, rehearse::sim::strategy_among_many(options, probed));
    if (failure.empty()) continue;
    ++count;
    if (failures != nullptr) failures->push_back(failure);
  }
  return count;
}

}  // namespace rehearse_test

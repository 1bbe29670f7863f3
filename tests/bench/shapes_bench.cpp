// SPDX-License-Identifier: BSD-3-Clause
// Time that symbolic sizes add to a capture, and that guards add to a call.
#include <benchmark/benchmark.h>

#include <ATen/InferSize.h>

#include <rehearse_internal/shapes/guard_program.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::shapes {
namespace {

using c10::SymInt;

void expr_multiply(benchmark::State& state) {
  const Expr s0 = Expr::symbol("s0");
  const Expr s1 = Expr::symbol("s1");
  for (auto _ : state) benchmark::DoNotOptimize(s0 * s1 * 64);
}
BENCHMARK(expr_multiply);

void sym_int_multiply(benchmark::State& state) {
  const auto env = ShapeEnv::make();
  const SymInt batch = env->add_backed(8, "x.size(0)");
  const SymInt length = env->add_backed(16, "x.size(1)");
  for (auto _ : state) benchmark::DoNotOptimize(batch * length);
}
BENCHMARK(sym_int_multiply);

// The ranges of the symbols decide this comparison, as they decide most comparisons.
void sym_int_compare_known(benchmark::State& state) {
  const auto env = ShapeEnv::make();
  const SymInt batch = env->add_backed(8, "x.size(0)");
  const SymInt length = env->add_backed(16, "x.size(1)");
  const SymInt both = batch * length * 64;
  for (auto _ : state) benchmark::DoNotOptimize(both == 1);
}
BENCHMARK(sym_int_compare_known);

void view_of_two_symbols(benchmark::State& state) {
  const auto env = ShapeEnv::make();
  const SymInt batch = env->add_backed(8, "x.size(0)");
  const SymInt length = env->add_backed(16, "x.size(1)");
  const SymInt numel = batch * length * 64;
  const std::vector<SymInt> shape = {batch, -1, 4, 16};
  for (auto _ : state) benchmark::DoNotOptimize(at::infer_size_dv(shape, numel));
}
BENCHMARK(view_of_two_symbols);

// Eight sizes with six symbols, and four guards.
void guards_of_a_call(benchmark::State& state) {
  const auto env = ShapeEnv::make();
  std::vector<std::int64_t> values = {8, 16, 8, 24, 16, 32, 40, 48};
  std::vector<SymInt> sizes;
  for (const std::int64_t value : values) sizes.push_back(env->add_backed(value, "size"));
  static_cast<void>(sizes[0] * 6 % 5 == 3);
  static_cast<void>(sizes[1] > sizes[0]);
  static_cast<void>(sizes[3] > 5);
  static_cast<void>(sizes[5].guard_int("f", 1));
  const GuardProgram program(*env);
  if (env->guards().size() != 4) state.SkipWithError("not four guards");
  for (auto _ : state) benchmark::DoNotOptimize(program.holds(values));
}
BENCHMARK(guards_of_a_call);

}  // namespace
}  // namespace rehearse::shapes

// SPDX-License-Identifier: BSD-3-Clause
// Correct jobs: collectives, messages, groups, labels, a thread, a compiled function, data-parallel training.
#include <thread>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "launched_job.h"

namespace rehearse::test {
namespace {

// Whole numbers that vary with the element and the rank. Their sums are exact.
at::Tensor numbers(const RankContext& context, at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  const auto count = c10::multiply_integers(sizes);
  return at::remainder(at::arange(count) * 7 + context.rank() * 3, 11).to(dtype).view(sizes);
}

void reductions(RankContext& context, Tensors& results) {
  const auto& group = context.group();
  for (const auto dtype : {at::kFloat, at::kDouble, at::kInt, at::kLong}) {
    for (const auto op : {c10d::ReduceOp::SUM, c10d::ReduceOp::MIN, c10d::ReduceOp::MAX, c10d::ReduceOp::PRODUCT}) {
      auto tensor = numbers(context, {3, 2}, dtype) % 3 + 1;
      group.allreduce(tensor, op)->wait();
      results.push_back(tensor);
    }
  }
  auto reduced = numbers(context, {5});
  group.reduce(reduced, group.size() - 1)->wait();
  if (context.rank() == group.size() - 1) results.push_back(reduced);
  auto part = at::empty({4});
  std::vector<at::Tensor> inputs;
  for (int rank = 0; rank < group.size(); ++rank) inputs.push_back(numbers(context, {4}) + rank);
  group.reduce_scatter(part, inputs)->wait();
  results.push_back(part.clone());
  auto whole = numbers(context, {4 * group.size()});
  group->_reduce_scatter_base(part, whole)->wait();
  results.push_back(part);
  std::vector<at::Tensor> both{numbers(context, {2}), numbers(context, {3})};
  group->allreduce_coalesced(both)->wait();
  results.insert(results.end(), both.begin(), both.end());
}

void copies(RankContext& context, Tensors& results) {
  const auto& group = context.group();
  const int size = group.size();
  for (int root = 0; root < size; ++root) {
    auto tensor = numbers(context, {2, 3});
    group.broadcast(tensor, root)->wait();
    results.push_back(tensor);
  }
  std::vector<at::Tensor> gathered;
  for (int rank = 0; rank < size; ++rank) gathered.push_back(at::empty({3}));
  group.allgather(gathered, numbers(context, {3}))->wait();
  results.insert(results.end(), gathered.begin(), gathered.end());
  auto whole = at::empty({size * 2});
  auto own = numbers(context, {2});
  group->_allgather_base(whole, own)->wait();
  results.push_back(whole);

  std::vector<std::vector<at::Tensor>> lists;
  std::vector<at::Tensor> inputs{own};
  if (context.rank() == 0) {
    lists.emplace_back();
    for (int rank = 0; rank < size; ++rank) lists[0].push_back(at::empty({2}));
  }
  group->gather(lists, inputs)->wait();
  if (context.rank() == 0) results.insert(results.end(), lists[0].begin(), lists[0].end());
  std::vector<at::Tensor> outputs{at::empty({2})};
  group->scatter(outputs, lists)->wait();
  results.push_back(outputs[0]);

  // Rank r sends r + 1 rows to each rank, and gets s + 1 rows from rank s.
  std::vector<std::int64_t> to(static_cast<std::size_t>(size), context.rank() + 1), from;
  for (int rank = 0; rank < size; ++rank) from.push_back(rank + 1);
  auto received = at::empty({size * (size + 1) / 2, 2});
  group.alltoall(received, numbers(context, {size * (context.rank() + 1), 2}), from, to)->wait();
  results.push_back(received);
  group.barrier()->wait();
}

void messages(RankContext& context, Tensors& results) {
  const auto& group = context.group();
  const int next = (context.rank() + 1) % group.size();
  const int previous = (context.rank() + group.size() - 1) % group.size();
  for (int tag = 0; tag < 3; ++tag) {
    auto received = at::empty({4});
    const auto send = group.send(numbers(context, {4}) + tag, next, tag);
    group.recv(received, previous, tag)->wait();
    send->wait();
    results.push_back(received);
  }
}

void groups(RankContext& context, Tensors& results) {
  const int size = context.size();
  std::vector<int> odd, all;
  for (int rank = size - 1; rank >= 0; --rank) all.push_back(rank);
  for (int rank = 1; rank < size; rank += 2) odd.push_back(rank);
  const auto some = context.new_group(odd, "odd");
  const auto reversed = context.new_group(all, "");
  if (some) {
    auto tensor = numbers(context, {3});
    some.allreduce(tensor)->wait();
    results.push_back(tensor);
  }
  std::vector<at::Tensor> gathered;
  for (int rank = 0; rank < size; ++rank) gathered.push_back(at::empty({2}));
  const auto label = context.label("backwards");
  reversed.allgather(gathered, numbers(context, {2}))->wait();
  results.insert(results.end(), gathered.begin(), gathered.end());
  // Ranks make the same two calls on two groups, in different order. They wait only after both calls.
  auto a = numbers(context, {2}), b = numbers(context, {2}) * 2;
  const bool first = context.rank() % 2 == 0;
  const auto one = first ? context.group().allreduce(a) : reversed.allreduce(b);
  const auto other = first ? reversed.allreduce(b) : context.group().allreduce(a);
  one->wait();
  other->wait();
  results.push_back(a);
  results.push_back(b);
  results.push_back(functional::all_reduce(numbers(context, {2}), reversed));
}

// All pairs of ranks give their groups the same names. One of these names is also the name of an earlier group of all
// ranks, and another one that of a later group.
void local_groups(RankContext& context, Tensors& results) {
  std::vector<int> all;
  for (int rank = 0; rank < context.size(); ++rank) all.push_back(rank);
  context.new_group(all, "all or two");
  const int first = context.rank() - context.rank() % 2;
  const bool has_peer = first + 1 < context.size();
  for (const auto* const name : {"pair", "pair", "all or two"}) {
    if (!has_peer) break;
    const auto pair = context.new_local_group({first, first + 1}, name);
    auto sum = numbers(context, {3});
    pair.allreduce(sum)->wait();
    results.push_back(sum);
    results.push_back(functional::all_reduce(sum + 1, pair));
  }
  const auto later = context.new_group(all, "pair");
  results.push_back(functional::all_reduce(numbers(context, {3}), later));
}

void coalesced(RankContext& context, Tensors& results) {
  const auto& group = context.group();
  const int next = (context.rank() + 1) % group.size();
  const int previous = (context.rank() + group.size() - 1) % group.size();
  auto sum = numbers(context, {3}), most = numbers(context, {2}), received = at::empty({4});
  group->startCoalescing(c10::kCPU);
  group.allreduce(sum);
  group.allreduce(most, c10d::ReduceOp::MAX);
  group.send(numbers(context, {4}), next);
  group.recv(received, previous);
  group->endCoalescing(c10::kCPU)->wait();
  results.insert(results.end(), {sum, most, received});
  std::vector<at::Tensor> outputs{at::empty({group.size() * 2})}, inputs{numbers(context, {2})};
  group->allgather_into_tensor_coalesced(outputs, inputs)->wait();
  results.push_back(outputs[0]);
}

void splits(RankContext& context, Tensors& results) {
  const auto backend = context.group()->getBackend(c10::kCPU);
  const std::vector<int> ranks{1, 0};
  const auto pair = backend->split({}, ranks, {});
  if (pair == nullptr) return;
  std::vector<at::Tensor> tensors{numbers(context, {3})};
  pair->allreduce(tensors)->wait();
  results.push_back(tensors[0]);
  std::vector<at::Tensor> message{context.rank() == 1 ? numbers(context, {2}) : at::empty({2})};
  if (context.rank() == 1) pair->send(message, 1, 7)->wait();
  if (context.rank() == 0) pair->recvAnysource(message, 7)->wait();
  results.push_back(message[0]);
}

// A rank that no longer needs a group must not close connections that other ranks are still making.
void groups_left_at_once(RankContext& context, Tensors& results) {
  std::vector<int> all;
  for (int rank = 0; rank < context.size(); ++rank) all.push_back(rank);
  for (int i = 0; i < 8; ++i) context.new_group(all, fmt::format("left at once {}", i));
  results.push_back(numbers(context, {1}));
}

// A thread that the body starts belongs to the rank.
void calls_of_a_thread(RankContext& context, Tensors& results) {
  auto tensor = numbers(context, {3});
  std::thread([&] {
    const auto label = context.label("of a thread");
    world_group().allreduce(tensor)->wait();
  }).join();
  results.push_back(tensor);
}

// Ranks exchange their arguments when they compile, on a group beside the user's.
void compiled(RankContext& context, Tensors& results) {
  auto twice = compile([](const at::Tensor& x) { return x * 2 + 1; }, {.group = context.group()});
  results.push_back(twice(numbers(context, {3})));
  results.push_back(twice(numbers(context, {5})));
  // The option same_graphs compares what the ranks have compiled, with an error on every rank.
  const auto own = [rank = context.rank()](const at::Tensor& x) { return rank == 0 ? x.sin() : x.cos(); };
  auto checked = compile(own, {.group = context.group(), .same_graphs = true});
  std::string error;
  try {
    checked(numbers(context, {3}));
  } catch (const compiler::CompileError& thrown) {
    error = thrown.what();
  }
  const bool names_both = error.find("aten.sin") != error.npos && error.find("aten.cos") != error.npos;
  TORCH_CHECK(names_both == (context.size() > 1), "same_graphs says: ", error);
}

void training(RankContext& context, Tensors& results) {
  torch::nn::Linear model(6, 4);
  DistributedDataParallel ddp(model, context.group(), {.bucket_cap_mb = 0.00005});
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.125));
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    ddp.forward(numbers(context, {4, 6}) + step).sum().backward();
    optimizer.step();
  }
  for (const auto& parameter : model->parameters()) results.push_back(parameter.detach().clone());
}

}  // namespace

std::vector<Job> collective_jobs() {
  return {{"reductions", reductions},
          {"copies", copies},
          {"messages", messages},
          {"groups", groups},
          {"local_groups", local_groups},
          {"coalesced", coalesced},
          {"splits", splits},
          {"groups_left_at_once", groups_left_at_once},
          {"calls_of_a_thread", calls_of_a_thread},
          {"compiled", compiled},
          {"training", training}};
}

}  // namespace rehearse::test

// SPDX-License-Identifier: BSD-3-Clause
#include "core/comm/matcher/mismatch_cases.h"

#include <utility>

#include "kit/pre_mul_sum.h"

namespace rehearse::comm {
namespace {

using c10d::ReduceOp;
using Call = MismatchCase::Call;
using Lists = std::vector<std::vector<at::Tensor>>;

Call call_allreduce(at::Tensor tensor, ReduceOp op = ReduceOp::SUM) {
  return [=](const ProcessGroup& group) { allreduce(group, tensor, op)->wait(); };
}
// c10d finds no back end for the meta device, so this function calls the back end directly.
Call call_allreduce_on_meta() {
  return [](const ProcessGroup& group) {
    std::vector<at::Tensor> tensors{at::empty({2}, at::kMeta)};
    group->getDefaultBackend()->allreduce(tensors, {})->wait();
  };
}
Call call_broadcast(at::Tensor tensor, int root) {
  return [=](const ProcessGroup& group) { broadcast(group, tensor, root)->wait(); };
}
Call call_barrier() {
  return [](const ProcessGroup& group) { group->barrier()->wait(); };
}
Call call_allgather(std::int64_t own, std::int64_t other) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> inputs{at::ones({own})};
    Lists outputs{{at::ones({own}), at::ones({other})}};
    if (group->getRank() == 1) std::swap(outputs[0][0], outputs[0][1]);
    group->allgather(outputs, inputs)->wait();
  };
}
Call call_gather(std::int64_t size, int root) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> inputs{at::ones({size})};
    Lists outputs;
    if (group->getRank() == root) outputs = {{at::ones({size}), at::ones({size})}};
    c10d::GatherOptions options;
    options.rootRank = root;
    group->gather(outputs, inputs, options)->wait();
  };
}
Call call_scatter(std::int64_t size, int root) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> outputs{at::ones({size})};
    Lists inputs;
    if (group->getRank() == root) inputs = {{at::ones({size}), at::ones({size})}};
    c10d::ScatterOptions options;
    options.rootRank = root;
    group->scatter(outputs, inputs, options)->wait();
  };
}
Call call_reduce_scatter(std::int64_t of_rank_0, std::int64_t of_rank_1) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> outputs{at::ones({group->getRank() == 0 ? of_rank_0 : of_rank_1})};
    Lists inputs{{at::ones({of_rank_0}), at::ones({of_rank_1})}};
    group->reduce_scatter(outputs, inputs)->wait();
  };
}
Call call_alltoall(std::vector<std::int64_t> output_splits, std::vector<std::int64_t> input_splits) {
  return [=](const ProcessGroup& group) {
    const auto rows = [](const std::vector<std::int64_t>& splits) {
      return splits.empty() ? 4 : splits[0] + splits[1];
    };
    alltoall(group, at::ones({rows(output_splits)}), at::ones({rows(input_splits)}), output_splits, input_splits)
        ->wait();
  };
}
Call call_alltoall_of_images(at::MemoryFormat format) {
  return [=](const ProcessGroup& group) {
    alltoall(group, at::ones({2, 3, 2, 2}).contiguous(format), at::ones({2, 3, 2, 2}).contiguous(format))->wait();
  };
}
// Each rank sends `sends[r]` numbers to rank r and expects `expects[r]` numbers from rank r.
Call call_alltoall_of_lists(std::vector<std::int64_t> expects, std::vector<std::int64_t> sends) {
  return [=](const ProcessGroup& group) {
    const auto ones = [](const std::vector<std::int64_t>& sizes) {
      std::vector<at::Tensor> tensors;
      for (const auto size : sizes) tensors.push_back(at::ones({size}));
      return tensors;
    };
    auto outputs = ones(expects), inputs = ones(sends);
    group->alltoall(outputs, inputs)->wait();
  };
}
Call call_allgather_base(at::Tensor input) {
  return [=](const ProcessGroup& group) {
    auto own = input, output = at::ones({2 * input.numel()});
    group->_allgather_base(output, own)->wait();
  };
}
Call call_reduce_scatter_base(at::Tensor output, ReduceOp op = ReduceOp::SUM) {
  return [=](const ProcessGroup& group) {
    auto own = output, input = at::ones({2 * output.numel()});
    c10d::ReduceScatterOptions options;
    options.reduceOp = op;
    group->_reduce_scatter_base(own, input, options)->wait();
  };
}
Call call_reduce(int root, ReduceOp op = ReduceOp::SUM) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> tensors{at::ones({2})};
    c10d::ReduceOptions options;
    options.rootRank = root;
    options.reduceOp = op;
    group->reduce(tensors, options)->wait();
  };
}
Call call_monitored_barrier() {
  return [](const ProcessGroup& group) { group->monitoredBarrier({}); };
}

at::Tensor f32(std::vector<std::int64_t> sizes) { return at::ones(sizes); }

}  // namespace

std::vector<MismatchCase> mismatch_cases() {
  return {
      {"Op",
       call_allreduce(f32({2})),
       call_broadcast(f32({2}), 0),
       "allreduce(sum, float32[2], cpu)",
       "broadcast(root=0, float32[2], cpu)",
       {{"op", "allreduce", "broadcast"}}},
      {"OpAndMore",
       call_allreduce(f32({2})),
       call_broadcast(at::ones({3}, at::kLong), 0),
       "allreduce(sum, float32[2], cpu)",
       "broadcast(root=0, int64[3], cpu)",
       {{"op", "allreduce", "broadcast"}, {"shape", "[2]", "[3]"}, {"dtype", "float32", "int64"}}},
      {"OpWithoutTensors",
       call_barrier(),
       call_allreduce(f32({2})),
       "barrier()",
       "allreduce(sum, float32[2], cpu)",
       {{"op", "barrier", "allreduce"}}},
      {"MonitoredBarrier",
       call_monitored_barrier(),
       call_barrier(),
       "monitored_barrier()",
       "barrier()",
       {{"op", "monitored_barrier", "barrier"}}},
      {"Shape",
       call_allreduce(f32({2})),
       call_allreduce(f32({3})),
       "allreduce(sum, float32[2], cpu)",
       "allreduce(sum, float32[3], cpu)",
       {{"shape", "[2]", "[3]"}}},
      {"ShapeOfEqualCount",
       call_allreduce(f32({2, 3})),
       call_allreduce(f32({3, 2})),
       "allreduce(sum, float32[2, 3], cpu)",
       "allreduce(sum, float32[3, 2], cpu)",
       {{"shape", "[2, 3]", "[3, 2]"}}},
      {"Strides",
       call_allreduce(f32({2, 3})),
       call_allreduce(f32({3, 2}).t()),
       "allreduce(sum, float32[2, 3], cpu)",
       "allreduce(sum, float32[2, 3] strides=[1, 2], cpu)",
       {{"strides", "[3, 1]", "[1, 2]"}}},
      {"StridesOfTwoOrders",
       call_broadcast(f32({4, 3, 2}).transpose(0, 1), 1),
       call_broadcast(f32({3, 2, 4}).transpose(1, 2), 1),
       "broadcast(root=1, float32[3, 4, 2] strides=[2, 6, 1], cpu)",
       "broadcast(root=1, float32[3, 4, 2] strides=[8, 1, 4], cpu)",
       {{"strides", "[2, 6, 1]", "[8, 1, 4]"}}},
      {"ShapeOfTwoOrders",  // the sizes differ, so the strides are not compared
       call_allreduce(f32({2, 3})),
       call_allreduce(f32({4, 2}).t()),
       "allreduce(sum, float32[2, 3], cpu)",
       "allreduce(sum, float32[2, 4] strides=[1, 2], cpu)",
       {{"shape", "[2, 3]", "[2, 4]"}}},
      {"Dtype",
       call_allreduce(f32({2})),
       call_allreduce(at::ones({2}, at::kDouble)),
       "allreduce(sum, float32[2], cpu)",
       "allreduce(sum, float64[2], cpu)",
       {{"dtype", "float32", "float64"}}},
      {"Device",
       call_allreduce(f32({2})),
       call_allreduce_on_meta(),
       "allreduce(sum, float32[2], cpu)",
       "allreduce(sum, float32[2], meta)",
       {{"device", "cpu", "meta"}}},
      {"SparseAndDense",
       call_allreduce(f32({2}).to_sparse()),
       call_allreduce(f32({2})),
       "allreduce_sparse(sum, float32[2] sparse_dim=1, cpu)",
       "allreduce(sum, float32[2], cpu)",
       {{"op", "allreduce_sparse", "allreduce"}}},
      {"SparseDim",
       call_allreduce(f32({2, 3}).to_sparse(1)),
       call_allreduce(f32({2, 3}).to_sparse(2)),
       "allreduce_sparse(sum, float32[2, 3] sparse_dim=1, cpu)",
       "allreduce_sparse(sum, float32[2, 3] sparse_dim=2, cpu)",
       {{"sparse_dim", "1", "2"}}},
      {"SparseShape",
       call_allreduce(f32({2}).to_sparse()),
       call_allreduce(f32({3}).to_sparse()),
       "allreduce_sparse(sum, float32[2] sparse_dim=1, cpu)",
       "allreduce_sparse(sum, float32[3] sparse_dim=1, cpu)",
       {{"shape", "[2]", "[3]"}}},
      {"Root",
       call_broadcast(f32({2}), 0),
       call_broadcast(f32({2}), 1),
       "broadcast(root=0, float32[2], cpu)",
       "broadcast(root=1, float32[2], cpu)",
       {{"root", "0", "1"}}},
      {"ReduceOp",
       call_allreduce(f32({2})),
       call_allreduce(f32({2}), ReduceOp::MAX),
       "allreduce(sum, float32[2], cpu)",
       "allreduce(max, float32[2], cpu)",
       {{"reduce_op", "sum", "max"}}},
      {"Factor",
       call_allreduce(f32({2}), rehearse::test::pre_mul_sum(0.5)),
       call_allreduce(f32({2}), rehearse::test::pre_mul_sum(at::full({1}, 0.25))),
       "allreduce(premul_sum 0.5, float32[2], cpu)",
       "allreduce(premul_sum 0.25, float32[2], cpu)",
       {{"factor", "0.5", "0.25"}}},
      {"AllgatherSizes",
       call_allgather(2, 3),
       call_allgather(4, 2),
       "allgather(float32 ([2], [3]), cpu)",
       "allgather(float32 ([2], [4]), cpu)",
       {{"shape", "([2], [3])", "([2], [4])"}}},
      {"GatherSize",
       call_gather(2, 0),
       call_gather(3, 0),
       "gather(root=0, float32[2], cpu)",
       "gather(root=0, float32[3], cpu)",
       {{"shape", "[2]", "[3]"}}},
      {"GatherRoot",
       call_gather(2, 0),
       call_gather(2, 1),
       "gather(root=0, float32[2], cpu)",
       "gather(root=1, float32[2], cpu)",
       {{"root", "0", "1"}}},
      {"ScatterSize",
       call_scatter(2, 0),
       call_scatter(3, 0),
       "scatter(root=0, float32[2], cpu)",
       "scatter(root=0, float32[3], cpu)",
       {{"shape", "[2]", "[3]"}}},
      {"ReduceScatterSizes",
       call_reduce_scatter(2, 2),
       call_reduce_scatter(2, 3),
       "reduce_scatter(sum, float32 2 x [2], cpu)",
       "reduce_scatter(sum, float32 ([2], [3]), cpu)",
       {{"shape", "2 x [2]", "([2], [3])"}}},
      {"SplitsUneven",
       call_alltoall({1, 3}, {1, 2}),
       call_alltoall({1, 3}, {3, 3}),
       "alltoall_base(float32[3], cpu, send [1, 2], receive [1, 3])",
       "alltoall_base(float32[6], cpu, send [3, 3], receive [1, 3])",
       {{"splits of rank 0 to rank 1", "sends 2", "expects 1"}}},
      {"SplitsEvenAndUneven",
       call_alltoall({}, {}),
       call_alltoall({2, 2}, {1, 2}),
       "alltoall_base(float32[4], cpu, send [2, 2], receive [2, 2])",
       "alltoall_base(float32[3], cpu, send [1, 2], receive [2, 2])",
       {{"splits of rank 1 to rank 0", "expects 2", "sends 1"}}},
      {"SplitsOfDifferentTotal",
       call_alltoall({}, {}),
       call_alltoall({3, 3}, {3, 3}),
       "alltoall_base(float32[4], cpu, send [2, 2], receive [2, 2])",
       "alltoall_base(float32[6], cpu, send [3, 3], receive [3, 3])",
       {{"splits of rank 0 to rank 1", "sends 2", "expects 3"}}},
      {"ListSizes",
       call_alltoall_of_lists({1, 3}, {1, 2}),
       call_alltoall_of_lists({1, 3}, {3, 3}),
       "alltoall(float32, cpu, send [1, 2], receive [1, 3])",
       "alltoall(float32, cpu, send [3, 3], receive [1, 3])",
       {{"splits of rank 0 to rank 1", "sends 2", "expects 1"}}},
      {"Formats",
       call_alltoall_of_images(at::MemoryFormat::Contiguous),
       call_alltoall_of_images(at::MemoryFormat::ChannelsLast),
       "alltoall_base(float32[2, 3, 2, 2], cpu, send [12, 12], receive [12, 12])",
       "alltoall_base(float32[2, 3, 2, 2], cpu, send [12, 12], receive [12, 12])",
       {{"strides", "[12, 4, 2, 1]", "[12, 1, 6, 3]"}}},
      {"ListsAndOneTensor",
       call_alltoall_of_lists({2, 2}, {2, 2}),
       call_alltoall({2, 2}, {2, 2}),
       "alltoall(float32, cpu, send [2, 2], receive [2, 2])",
       "alltoall_base(float32[4], cpu, send [2, 2], receive [2, 2])",
       {{"op", "alltoall", "alltoall_base"}}},
      {"AllgatherBaseShape",
       call_allgather_base(f32({2})),
       call_allgather_base(f32({3})),
       "_allgather_base(float32[2], cpu)",
       "_allgather_base(float32[3], cpu)",
       {{"shape", "[2]", "[3]"}}},
      {"AllgatherBaseShapeOfEqualCount",
       call_allgather_base(f32({2, 3})),
       call_allgather_base(f32({6})),
       "_allgather_base(float32[2, 3], cpu)",
       "_allgather_base(float32[6], cpu)",
       {{"shape", "[2, 3]", "[6]"}}},
      {"ReduceScatterBaseShape",
       call_reduce_scatter_base(f32({2})),
       call_reduce_scatter_base(f32({3})),
       "_reduce_scatter_base(sum, float32[2], cpu)",
       "_reduce_scatter_base(sum, float32[3], cpu)",
       {{"shape", "[2]", "[3]"}}},
      {"ReduceScatterBaseOp",
       call_reduce_scatter_base(f32({2})),
       call_reduce_scatter_base(f32({2}), ReduceOp::MIN),
       "_reduce_scatter_base(sum, float32[2], cpu)",
       "_reduce_scatter_base(min, float32[2], cpu)",
       {{"reduce_op", "sum", "min"}}},
      {"ReduceRoot",
       call_reduce(0),
       call_reduce(1),
       "reduce(root=0, sum, float32[2], cpu)",
       "reduce(root=1, sum, float32[2], cpu)",
       {{"root", "0", "1"}}},
      {"ReduceOpOfReduce",
       call_reduce(1),
       call_reduce(1, ReduceOp::MAX),
       "reduce(root=1, sum, float32[2], cpu)",
       "reduce(root=1, max, float32[2], cpu)",
       {{"reduce_op", "sum", "max"}}},
  };
}

}  // namespace rehearse::comm

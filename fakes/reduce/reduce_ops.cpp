// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "reduce/reduction.h"
#include "reduce/ring_order.h"
#include "workspace.h"

namespace rehearse::fakes {
namespace {

using comm::Operation;

// While a block is reduced and written back in place, the blocks of all ranks should stay in the second-level cache.
constexpr std::size_t kCacheBytes = 512 << 10;
constexpr std::size_t kBlockBytesMin = 2 << 10;

double scalar_of(const at::Tensor& tensor) {
  const void* const data = tensor.unsafeGetTensorImpl()->data();
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Double:
      return *static_cast<const double*>(data);
    case c10::ScalarType::Half:
      return *static_cast<const c10::Half*>(data);
    case c10::ScalarType::BFloat16:
      return *static_cast<const c10::BFloat16*>(data);
    default:
      return *static_cast<const float*>(data);
  }
}

// PREMUL_SUM's factor, rounded to the dtype.
double factor_of(const Operation& call, c10::ScalarType dtype) {
  const auto& supplement = static_cast<const c10d::NCCLPreMulSumSupplement&>(*call.reduce_supplement);
  const double factor =
      supplement.tensor_factor.defined() ? scalar_of(supplement.tensor_factor) : supplement.double_factor;
  switch (dtype) {
    case c10::ScalarType::Double:
    case c10::ScalarType::ComplexDouble:
      return factor;
    case c10::ScalarType::Half:
      return c10::Half(static_cast<float>(factor));
    case c10::ScalarType::BFloat16:
      return c10::BFloat16(static_cast<float>(factor));
    default:
      return static_cast<float>(factor);
  }
}

class Reducer {
 public:
  Reducer(const Operation& call, Calls calls, Workspace& workspace)
      : workspace_(workspace), ranks_(static_cast<int>(calls.size())) {
    const at::Tensor& tensor = call.inputs[0];
    find_reduction(tensor.scalar_type(), call.reduce_op, how_);
    element_bytes_ = tensor.dtype().itemsize();
    if (!how_.scaled) return;
    for (const Operation* const each : calls) {
      workspace.factors.push_back(factor_of(*each, tensor.scalar_type()));
    }
  }

  std::size_t element_bytes() const noexcept { return element_bytes_; }
  RingOrder order_of_allreduce(std::int64_t elements) const noexcept {
    return RingOrder::of_allreduce(elements, element_bytes_, ranks_);
  }

  // Reduces `count` elements of every rank's input and stores the result in every output. An output may be exactly the
  // elements of an input; otherwise inputs and outputs share no memory. `order` is the ring order of a whole tensor, in
  // which these elements begin at `offset`. The order matters only if MIN or MAX meets a NaN: it decides whether the
  // NaN stays.
  void run(std::span<const Region> inputs, std::span<const Region> outputs, std::int64_t count, RingOrder order,
           std::int64_t offset) {
    const std::size_t per_rank = kCacheBytes / static_cast<std::size_t>(ranks_);
    const std::size_t bytes = std::clamp(per_rank & ~std::size_t{1023}, kBlockBytesMin, kBlockBytesMax);
    const auto block =
        static_cast<std::int64_t>(bytes / how_.kernel.accumulator_bytes / static_cast<std::size_t>(how_.components));
    for (std::int64_t first = 0; first < count; first += block) {
      const std::int64_t length = std::min(block, count - first);
      const std::byte* const result = reduce_block(inputs, first, length);
      if (meets_nan(length)) {
        reduce_in_order(inputs, outputs, first, length, order, offset);
      } else {
        store_block(outputs, first, result, length);
      }
    }
  }

 private:
  const std::byte* block_of(const Region& input, std::int64_t first, std::int64_t length, int slot) {
    const Region region = advanced(input, first);
    if (is_contiguous(region)) return address(region, element_bytes_);
    std::byte* const scratch = workspace_.gathered[slot].bytes;
    gather(scratch, region, length, element_bytes_);
    return scratch;
  }

  const std::byte* reduce_block(std::span<const Region> inputs, std::int64_t first, std::int64_t length) {
    const auto numbers = static_cast<std::size_t>(length * how_.components);
    const ReduceKernel& kernel = how_.kernel;
    void* const acc = workspace_.accumulator.bytes;
    if (how_.scaled) {
      kernel.load_scaled(acc, block_of(inputs[0], first, length, 0), numbers, workspace_.factors[0]);
      for (int r = 1; r < ranks_; ++r) {
        kernel.fold_scaled(acc, block_of(inputs[r], first, length, 0), numbers, workspace_.factors[r]);
      }
    } else {
      kernel.load(acc, block_of(inputs[0], first, length, 0), numbers);
      int r = 1;
      for (; r + 4 <= ranks_; r += 4) {
        const void* four[4];
        for (int i = 0; i < 4; ++i) four[i] = block_of(inputs[r + i], first, length, i);
        kernel.fold4(acc, four, numbers);
      }
      for (; r < ranks_; ++r) kernel.fold(acc, block_of(inputs[r], first, length, 0), numbers);
    }
    return rounded(numbers);
  }

  // The accumulator's content in the stored type.
  const std::byte* rounded(std::size_t numbers) {
    std::byte* const result = workspace_.result.bytes;
    const void* const acc = workspace_.accumulator.bytes;
    if (how_.average) {
      how_.kernel.store_average(result, acc, numbers, ranks_);
    } else if (how_.kernel.store != nullptr) {
      how_.kernel.store(result, acc, numbers);
    } else {
      return workspace_.accumulator.bytes;
    }
    return result;
  }

  void store_block(std::span<const Region> outputs, std::int64_t first, const std::byte* result, std::int64_t length) {
    for (const Region& output : outputs) store(advanced(output, first), result, length, element_bytes_);
  }

  // fold() keeps every NaN, so the result shows whether a rank's input had one.
  bool meets_nan(std::int64_t length) const {
    const auto has_nan = how_.kernel.has_nan;
    return has_nan != nullptr && has_nan(workspace_.accumulator.bytes, static_cast<std::size_t>(length));
  }

  void reduce_in_order(std::span<const Region> inputs, std::span<const Region> outputs, std::int64_t first,
                       std::int64_t length, RingOrder order, std::int64_t offset) {
    void* const acc = workspace_.accumulator.bytes;
    const std::int64_t end = first + length;
    while (first < end) {
      const int last_rank = order.last_rank(offset + first);
      const std::int64_t part = std::min(end, order.end_of_chunk(offset + first) - offset) - first;
      const auto numbers = static_cast<std::size_t>(part);
      for (int step = 1; step <= ranks_; ++step) {
        const int rank = (last_rank + ranks_ - step) % ranks_;
        const auto combine = step == 1 ? how_.kernel.load : how_.kernel.fold_like_std;
        combine(acc, block_of(inputs[static_cast<std::size_t>(rank)], first, part, 0), numbers);
      }
      store_block(outputs, first, rounded(numbers), part);
      first += part;
    }
  }

  Workspace& workspace_;
  int ranks_;
  Reduction how_;
  std::size_t element_bytes_ = 0;
};

void allreduce(Calls calls, Workspace& workspace) {
  Reducer reducer(*calls[0], calls, workspace);
  // A copied call is a part of a coalesced all-reduce. Gloo copies all parts into one contiguous tensor and reduces
  // that.
  const bool copied = calls[0]->tag == Operation::kCopied;
  const bool dense =
      !copied && all_dense_alike(calls, [](const Operation& call) -> const at::Tensor& { return call.outputs[0]; });
  for (const Operation* const call : calls) {
    Region region = output_region(call->outputs[0]);
    if (dense) region.layout = nullptr;
    workspace.outputs.push_back(region);
  }
  const std::int64_t count = calls[0]->outputs[0].numel();
  const auto [before, after] = copied ? workspace.other_parts : Workspace::OtherParts();
  reducer.run(workspace.outputs, workspace.outputs, count, reducer.order_of_allreduce(before + count + after), before);
}

void reduce(Calls calls, Workspace& workspace) {
  const Operation& call = *calls[0];
  Reducer reducer(call, calls, workspace);
  const bool dense = all_dense_alike(calls, [](const Operation& each) -> const at::Tensor& { return each.inputs[0]; });
  for (const Operation* const each : calls) workspace.inputs.push_back(input_region(each->inputs[0]));
  Region output = output_region(calls[static_cast<std::size_t>(call.root)]->outputs[0]);
  if (dense) {
    for (Region& input : workspace.inputs) input.layout = nullptr;
    output.layout = nullptr;
  }
  const std::int64_t count = call.inputs[0].numel();
  const auto order = RingOrder::of_reduce(count, reducer.element_bytes(), static_cast<int>(calls.size()));
  reducer.run(workspace.inputs, {&output, 1}, count, order, 0);
}

// Reduces the pieces in order of rank and writes rank r's output when piece r is complete. An input that overlaps the
// output is safe if the output is exactly piece r of it; otherwise it is copied first. Combines in the order that an
// all-reduce of the whole inputs has, as Gloo does.
void reduce_scatter_base(Calls calls, Workspace& workspace) {
  Reducer reducer(*calls[0], calls, workspace);
  const auto n = static_cast<std::int64_t>(calls.size());
  const std::int64_t count = calls[0]->outputs[0].numel();
  for (std::int64_t r = 0; r < n; ++r) {
    Region input = input_region(calls[r]->inputs[0]);
    const Region output = output_region(calls[r]->outputs[0]);
    if (!same_elements(advanced(input, r * count), output, reducer.element_bytes()) &&
        may_overlap(input, n * count, output, count, reducer.element_bytes())) {
      input = workspace.copy_of(input, n * count, reducer.element_bytes());
    }
    workspace.inputs.push_back(input);
    workspace.outputs.push_back(output);
  }
  workspace.pieces.resize(calls.size());
  const RingOrder order = reducer.order_of_allreduce(n * count);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t r = 0; r < n; ++r) workspace.pieces[r] = advanced(workspace.inputs[r], i * count);
    reducer.run(workspace.pieces, {&workspace.outputs[i], 1}, count, order, i * count);
  }
}

// Combines in the order that an all-reduce of each piece has, as Gloo does.
void reduce_scatter(Calls calls, Workspace& workspace) {
  Reducer reducer(*calls[0], calls, workspace);
  const std::size_t bytes = reducer.element_bytes();
  const std::size_t n = calls.size();
  workspace.pieces.resize(n * n);  // all ranks of piece 0, then all ranks of piece 1, ...
  for (std::size_t r = 0; r < n; ++r) {
    const Region output = output_region(calls[r]->outputs[0]);
    const std::int64_t output_count = calls[r]->outputs[0].numel();
    for (std::size_t i = 0; i < n; ++i) {
      const at::Tensor& piece = calls[r]->inputs[i];
      Region input = input_region(piece);
      // When rank r's output is written, the pieces before r have already been read.
      if (i >= r && !(i == r && same_elements(input, output, bytes)) &&
          may_overlap(input, piece.numel(), output, output_count, bytes)) {
        input = workspace.copy_of(input, piece.numel(), bytes);
      }
      workspace.pieces[i * n + r] = input;
    }
    workspace.outputs.push_back(output);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t count = calls[i]->outputs[0].numel();
    reducer.run({&workspace.pieces[i * n], n}, {&workspace.outputs[i], 1}, count, reducer.order_of_allreduce(count), 0);
  }
}

// A wrapper: with UndefinedBehaviorSanitizer, g++ 12 assumes that the address of a function in another file may be
// null.
void reduce_sparse(Calls calls, Workspace& workspace) { allreduce_sparse(calls, workspace); }

constexpr Mover reducer_of(c10d::OpType type) noexcept {
  switch (type) {
    case c10d::OpType::ALLREDUCE:
      return allreduce;
    case c10d::OpType::_ALLREDUCE_SPARSE:
      return reduce_sparse;
    case c10d::OpType::REDUCE:
      return reduce;
    case c10d::OpType::REDUCE_SCATTER:
      return reduce_scatter;
    case c10d::OpType::_REDUCE_SCATTER_BASE:
      return reduce_scatter_base;
    default:
      return nullptr;
  }
}
static_assert(comm::all_ops([](const comm::OpRow& row) {
                return (reducer_of(row.type) != nullptr) == (row.kind == comm::OpKind::reduces);
              }),
              "what reduces is reduced here");

}  // namespace

void move_reduction(const comm::Transfer& transfer, Workspace& workspace) {
  reducer_of(transfer.type)(transfer.calls, workspace);
}

}  // namespace rehearse::fakes

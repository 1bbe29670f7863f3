// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/number_exchange.h"

#include <utility>

#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

namespace rehearse::parallel {
namespace {

// No model has so many parameters that their description has this many numbers. A larger length must be an error, so
// refuse it before memory is allocated for it.
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 26;

Numbers values_of(const at::Tensor& tensor) {
  const auto host = tensor.cpu();
  const auto* const data = host.const_data_ptr<std::int64_t>();
  return {data, data + host.numel()};
}

}  // namespace

at::Device device_of(const c10d::ProcessGroup& group) {
  for (const at::Device& device : group.getDeviceTypes()) {
    if (!device.is_cpu()) return device;
  }
  return at::kCPU;
}

NumberExchange::NumberExchange(c10::intrusive_ptr<c10d::ProcessGroup> group, at::Device device)
    : group_(std::move(group)), device_(device) {}

std::vector<at::Tensor> NumberExchange::tensors_of(const Numbers& numbers) const {
  return {at::tensor(numbers, at::kLong).to(device_)};
}

Numbers NumberExchange::all_reduce(const Numbers& numbers, c10d::ReduceOp::RedOpType op) const {
  auto tensors = tensors_of(numbers);
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  group_->allreduce(tensors, options)->wait();
  return values_of(tensors[0]);
}

Numbers NumberExchange::broadcast(const Numbers& numbers, int root) const {
  const auto length = broadcast_equal({static_cast<std::int64_t>(numbers.size())}, root)[0];
  TORCH_CHECK(0 <= length && length <= kMostNumbers, "rank ", root, " of the group announced ", length,
              " numbers; it may send 0 to ", kMostNumbers);
  auto sent = numbers;
  sent.resize(static_cast<std::size_t>(length));
  return broadcast_equal(sent, root);
}

Numbers NumberExchange::broadcast_equal(const Numbers& numbers, int root) const {
  auto tensors = tensors_of(numbers);
  c10d::BroadcastOptions options;
  options.rootRank = root;
  group_->broadcast(tensors, options)->wait();
  return values_of(tensors[0]);
}

c10::intrusive_ptr<c10d::Work> NumberExchange::start_sum(std::int64_t number) const {
  auto tensors = tensors_of({number});
  return group_->allreduce(tensors);
}

}  // namespace rehearse::parallel

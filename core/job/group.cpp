// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/group.h>

#include <stdexcept>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse_internal/comm/described_backend.h>
#include <rehearse_internal/operators/group_use.h>
#include <rehearse_internal/operators/noted_group.h>

namespace rehearse {
namespace {

// The error of LibTorch's dispatcher for an undefined tensor names no call.
const at::Tensor& defined_in(const char* call, const at::Tensor& tensor) {
  if (tensor.defined()) return tensor;
  throw std::invalid_argument(fmt::format(
      "Group::{}() was given an undefined tensor; a gradient is undefined if no backward has reached it", call));
}

std::vector<at::Tensor> list_of_one(const char* call, const at::Tensor& tensor) { return {defined_in(call, tensor)}; }

std::vector<at::Tensor> list_of_all(const char* call, std::vector<at::Tensor> tensors) {
  for (const auto& tensor : tensors) defined_in(call, tensor);
  return tensors;
}

}  // namespace

const c10::intrusive_ptr<c10d::ProcessGroup>& Group::get() const {
  operators::note_group_use(this, group_.get());
  return group_;
}

c10d::ProcessGroup& Group::checked() const {
  operators::note_group_use(this, group_.get());
  if (!group_) throw std::logic_error("this group is empty: the calling rank is not a member of it");
  return *group_;
}

std::vector<int> Group::ranks() const {
  const auto backend = checked().getDefaultBackend();
  if (const auto* const described = dynamic_cast<const comm::DescribedBackend*>(backend.get()))
    return described->identity().ranks;
  throw std::logic_error("the ranks of the group \"" + name() + "\" are not known: its back end \"" +
                         backend->getBackendName() +
                         "\" does not tell them; make the group by RankContext::new_group()");
}

Work Group::allreduce(at::Tensor tensor, c10d::ReduceOp op) const {
  std::vector<at::Tensor> tensors = list_of_one("allreduce", tensor);
  c10d::AllreduceOptions options;
  options.reduceOp = std::move(op);
  return checked().allreduce(tensors, options);
}

Work Group::broadcast(at::Tensor tensor, int root) const {
  std::vector<at::Tensor> tensors = list_of_one("broadcast", tensor);
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return checked().broadcast(tensors, options);
}

Work Group::reduce(at::Tensor tensor, int root, c10d::ReduceOp op) const {
  std::vector<at::Tensor> tensors = list_of_one("reduce", tensor);
  c10d::ReduceOptions options;
  options.rootRank = root;
  options.reduceOp = std::move(op);
  return checked().reduce(tensors, options);
}

Work Group::allgather(std::vector<at::Tensor> outputs, at::Tensor input) const {
  std::vector<std::vector<at::Tensor>> output_lists{list_of_all("allgather", std::move(outputs))};
  std::vector<at::Tensor> inputs = list_of_one("allgather", input);
  return checked().allgather(output_lists, inputs);
}

Work Group::reduce_scatter(at::Tensor output, std::vector<at::Tensor> inputs, c10d::ReduceOp op) const {
  std::vector<at::Tensor> outputs = list_of_one("reduce_scatter", output);
  std::vector<std::vector<at::Tensor>> input_lists{list_of_all("reduce_scatter", std::move(inputs))};
  c10d::ReduceScatterOptions options;
  options.reduceOp = std::move(op);
  return checked().reduce_scatter(outputs, input_lists, options);
}

Work Group::alltoall(at::Tensor output, at::Tensor input, std::vector<std::int64_t> output_splits,
                     std::vector<std::int64_t> input_splits) const {
  defined_in("alltoall", input);
  defined_in("alltoall", output);
  return checked().alltoall_base(output, input, output_splits, input_splits);
}

Work Group::send(at::Tensor tensor, int to, int tag) const {
  std::vector<at::Tensor> tensors = list_of_one("send", tensor);
  return checked().send(tensors, to, tag);
}

Work Group::recv(at::Tensor tensor, int from, int tag) const {
  std::vector<at::Tensor> tensors = list_of_one("recv", tensor);
  return checked().recv(tensors, from, tag);
}

Work Group::barrier() const { return checked().barrier(); }

void Group::extend_timeout_once(std::chrono::milliseconds duration) const {
  const auto backend = checked().getDefaultBackend();
  if (auto* const limited = dynamic_cast<comm::DescribedBackend*>(backend.get()))
    limited->extend_timeout_once(duration);
}

Group Group::shrink(const std::vector<int>& ranks_to_exclude, bool abort) const {
  auto& parent = checked();
  const auto backend =
      parent.getDefaultBackend()->shrink({ranks_to_exclude.begin(), ranks_to_exclude.end()}, abort ? 1 : 0);
  c10::intrusive_ptr<c10d::Store> store;
  if (parent.getStore() != nullptr)
    store = c10::make_intrusive<c10d::PrefixStore>(backend->getGroupUid(), parent.getStore());
  auto group = c10::make_intrusive<operators::NotedGroup>(store, backend->getRank(), backend->getSize());
  for (const auto& device : parent.getDeviceTypes()) group->setBackend(device.type(), parent.getBackendType(), backend);
  group->setDefaultBackend(parent.getBackendType());
  group->setGroupName(backend->getGroupUid());
  group->setGroupDesc(backend->getGroupDesc());
  return Group(std::move(group));
}

}  // namespace rehearse

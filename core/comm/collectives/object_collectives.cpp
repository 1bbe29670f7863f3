// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/object_collectives.h>

#include <algorithm>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <rehearse_internal/comm/byte_tensors.h>

// Declared here, because torch/csrc/jit/serialization/pickle.h includes the whole pickler and takes three seconds to
// compile.
namespace torch::jit {
std::vector<char> pickle_save(const c10::IValue& value);
c10::IValue pickle_load(const std::vector<char>& data);
}  // namespace torch::jit

namespace rehearse::comm {
namespace {

using Tensors = std::vector<at::Tensor>;

// A larger size can only come from an error. Refuse it before memory is allocated for it.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 36;

void check_group(const ProcessGroupPtr& group, const char* call) {
  TORCH_CHECK_VALUE(group != nullptr, call, ": the group is null; is this rank no member of it?");
}

void check_root(const ProcessGroupPtr& group, int root, const char* call) {
  check_group(group, call);
  TORCH_CHECK_VALUE(root >= 0 && root < group->getSize(), call, ": root is ", root, "; the group has ranks 0 to ",
                    group->getSize() - 1);
}

// Outputs start as zeros, so that if a collective is skipped (by a fault, say) every run gets the same result.
Tensors outputs_of(std::int64_t size, int count, at::ScalarType dtype) {
  Tensors tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(at::zeros({size}, dtype));
  return tensors;
}

Tensors all_gather(c10d::ProcessGroup& group, const at::Tensor& input) {
  Tensors inputs{input};
  std::vector<Tensors> outputs{outputs_of(input.numel(), group.getSize(), input.scalar_type())};
  group.allgather(outputs, inputs)->wait();
  return std::move(outputs[0]);
}

void broadcast(c10d::ProcessGroup& group, const at::Tensor& tensor, int root) {
  Tensors tensors{tensor};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  group.broadcast(tensors, options)->wait();
}

void check_size(std::int64_t size, int rank, const char* call) {
  TORCH_CHECK_VALUE(0 <= size && size <= kMostBytes, call, ": rank ", rank, " of the group announced a payload of ",
                    size, " bytes; it may have 0 to ", kMostBytes);
}

std::vector<std::int64_t> all_sizes(c10d::ProcessGroup& group, std::string_view payload, const char* call) {
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& size :
       all_gather(group, at::full({1}, static_cast<std::int64_t>(payload.size()), at::kLong))) {
    sizes.push_back(size.item<std::int64_t>());
    check_size(sizes.back(), static_cast<int>(sizes.size()) - 1, call);
  }
  const std::int64_t own = sizes.at(static_cast<std::size_t>(group.getRank()));
  TORCH_CHECK_VALUE(own == static_cast<std::int64_t>(payload.size()), call, ": rank ", group.getRank(),
                    " of the group announced ", payload.size(), " bytes and got ", own,
                    " back: the gather left out its call, or damaged the bytes");
  return sizes;
}

std::int64_t largest(const std::vector<std::int64_t>& sizes) { return *std::ranges::max_element(sizes); }

}  // namespace

std::vector<std::string> all_gather_object(const ProcessGroupPtr& group, std::string_view payload) {
  check_group(group, "all_gather_object");
  const auto sizes = all_sizes(*group, payload, "all_gather_object");
  const auto most = largest(sizes);
  // All ranks know that there is nothing to send, so none makes the second call.
  if (most == 0) return std::vector<std::string>(sizes.size());
  return texts_in(all_gather(*group, bytes_of(payload, most)), sizes);
}

std::string broadcast_object(const ProcessGroupPtr& group, std::string_view payload, int root) {
  check_root(group, root, "broadcast_object");
  const bool is_root = group->getRank() == root;
  const auto size = at::full({1}, static_cast<std::int64_t>(is_root ? payload.size() : 0), at::kLong);
  broadcast(*group, size, root);
  const auto count = size.item<std::int64_t>();
  check_size(count, root, "broadcast_object");
  if (count == 0) return {};
  const auto bytes = is_root ? bytes_of(payload, count) : at::zeros({count}, at::kByte);
  broadcast(*group, bytes, root);
  return text_in(bytes, count);
}

std::vector<std::string> gather_object(const ProcessGroupPtr& group, std::string_view payload, int root) {
  check_root(group, root, "gather_object");
  const bool is_root = group->getRank() == root;
  const auto sizes = all_sizes(*group, payload, "gather_object");
  const auto most = largest(sizes);
  if (most == 0) return std::vector<std::string>(is_root ? sizes.size() : 0);
  Tensors inputs{bytes_of(payload, most)};
  std::vector<Tensors> outputs;
  if (is_root) outputs.push_back(outputs_of(most, group->getSize(), at::kByte));
  c10d::GatherOptions options;
  options.rootRank = root;
  group->gather(outputs, inputs, options)->wait();
  return is_root ? texts_in(outputs[0], sizes) : std::vector<std::string>();
}

std::string scatter_object(const ProcessGroupPtr& group, const std::vector<std::string>& payloads, int root) {
  check_root(group, root, "scatter_object");
  const int ranks = group->getSize();
  const bool is_root = group->getRank() == root;
  TORCH_CHECK_VALUE(!is_root || static_cast<int>(payloads.size()) == ranks, "scatter_object: the root gave ",
                    payloads.size(), " payloads; a group of ", ranks, " needs one for each rank");
  const auto announced = at::zeros({ranks}, at::kLong);  // owns its memory, because a call that fails may still use it
  auto* const first = announced.mutable_data_ptr<std::int64_t>();
  if (is_root) std::transform(payloads.begin(), payloads.end(), first, [](const auto& p) { return p.size(); });
  broadcast(*group, announced, root);
  const std::vector<std::int64_t> sizes(first, first + ranks);
  for (const std::int64_t size : sizes) check_size(size, root, "scatter_object");
  const auto most = largest(sizes);
  if (most == 0) return {};
  Tensors outputs{at::zeros({most}, at::kByte)};
  std::vector<Tensors> inputs;
  if (is_root) {
    inputs.emplace_back();
    for (const std::string& payload : payloads) inputs[0].push_back(bytes_of(payload, most));
  }
  c10d::ScatterOptions options;
  options.rootRank = root;
  group->scatter(outputs, inputs, options)->wait();
  return text_in(outputs[0], sizes[static_cast<std::size_t>(group->getRank())]);
}

std::string to_bytes(const c10::IValue& value) {
  const auto bytes = torch::jit::pickle_save(value);
  return {bytes.begin(), bytes.end()};
}

c10::IValue from_bytes(std::string_view bytes) { return torch::jit::pickle_load({bytes.begin(), bytes.end()}); }

}  // namespace rehearse::comm

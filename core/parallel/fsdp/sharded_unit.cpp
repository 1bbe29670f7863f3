// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/sharded_unit.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/formatting/name_list.h>
#include <rehearse_internal/operators/guarded_storages.h>

namespace rehearse::parallel {
namespace {

// While it lives, the calling fiber's computations are the library's own: no StorageGuard is called for them, and
// autograd does not record them.
struct OwnWork {
  const operators::UnguardedStorages unguarded;
  const at::NoGradGuard no_grad;
};

// Fills padding with zeros, so that ranks send no uninitialised memory.
at::Tensor make_buffer(at::IntArrayRef sizes, const at::TensorOptions& options, bool has_padding) {
  return has_padding ? at::zeros(sizes, options) : at::empty(sizes, options);
}

}  // namespace

ShardedUnit::ShardedUnit(std::string path, std::vector<NamedParameter> parameters, const ShardGroup& group,
                         Dtypes dtypes)
    : path_(std::move(path)),
      text_(path_.empty() ? "the root unit" : fmt::format("unit \"{}\"", path_)),
      parameters_text_(text_ + ": parameters"),
      group_(&group),
      reduce_dtype_(dtypes.reduction.value_or(dtypes.parameters.value_or(parameters.at(0).tensor.scalar_type()))) {
  const OwnWork own;
  parameters_.reserve(parameters.size());
  for (auto& each : parameters) {
    const auto& made = parameters_.emplace_back(std::move(each), text_, group.rank(), group.size(), dtypes.parameters);
    elements_ += made.layout().padded_elements();
    is_even_ &= made.layout().is_even();
  }
}

void ShardedUnit::name_parameters_in_calls() {
  names_parameters_ = true;
  std::vector<std::string> names;
  for (const auto& each : parameters_) names.push_back(each.name());
  parameters_text_ = fmt::format("{}: parameters {}", text_, fmt::join(names, ", "));
}

at::Tensor ShardedUnit::packed_shards() const {
  const auto options = parameters_.front().whole().options();
  at::Tensor buffer = make_buffer({elements_}, options, !is_even_);
  std::int64_t offset = 0;
  for (const auto& each : parameters_) {
    const at::Tensor& shard = each.shard();
    buffer.narrow(0, offset, shard.numel()).copy_(shard.detach().view(-1));
    offset += each.layout().padded_elements();
  }
  return buffer;
}

void ShardedUnit::start_gather() {
  if (state_ != State::sharded) return;
  const OwnWork own;
  if (group_->size() > 1) {
    const at::Tensor input = packed_shards();
    at::Tensor output = at::empty({group_->size(), elements_}, input.options());
    gather_ = group_->all_gather(output.view(-1), input, parameters_text_);
    gathered_ = std::move(output);
  }
  gathered_version_ = version();
  state_ = State::gathering;
}

void ShardedUnit::make_whole() {
  if (state_ == State::whole) return;
  // Drop the result of an all-gather if the shards have changed since.
  if (state_ == State::gathering && gathered_version_ != version()) free();
  start_gather();
  const OwnWork own;
  if (gather_) gather_->wait();
  std::int64_t offset = 0;
  for (auto& each : parameters_) {
    each.fill();
    if (gathered_.defined()) {
      each.layout().copy_out(gathered_, offset, each.whole());
    } else {
      each.whole().copy_(each.shard());
    }
    offset += each.layout().padded_elements();
  }
  gather_.reset();
  gathered_.reset();
  state_ = State::whole;
}

std::vector<at::Tensor> ShardedUnit::gather_values() const {
  std::vector<at::Tensor> values;
  for (const auto& each : parameters_) values.push_back(gather_rows(each, each.shard().detach()));
  return values;
}

at::Tensor ShardedUnit::gather_rows(const ShardedParameter& parameter, const at::Tensor& rows) const {
  const OwnWork own;
  const auto& layout = parameter.layout();
  if (group_->size() == 1) return rows.clone();
  const at::Tensor input = make_buffer({layout.padded_elements()}, rows.options(), !layout.is_even());
  input.narrow(0, 0, rows.numel()).copy_(rows.reshape(-1));
  const at::Tensor output = at::empty({group_->size(), layout.padded_elements()}, rows.options());
  group_->all_gather(output.view(-1), input, text_ + ": values of " + parameter.name())->wait();
  at::Tensor whole = at::empty(layout.sizes(), rows.options());
  layout.copy_out(output, 0, whole);
  return whole;
}

void ShardedUnit::free() {
  if (gather_) gather_->wait();
  abandon_memory();
}

void ShardedUnit::abandon() noexcept {
  reduction_.reset();
  abandon_memory();
}

void ShardedUnit::abandon_memory() noexcept {
  gather_.reset();
  gathered_.reset();
  for (auto& each : parameters_) each.free();
  state_ = State::sharded;
}

std::uint64_t ShardedUnit::version() const {
  std::uint64_t sum = 0;
  for (const auto& each : parameters_) sum += each.shard()._version();
  return sum;
}

std::vector<std::size_t> ShardedUnit::with_gradients() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].gradient().defined()) found.push_back(i);
  }
  return found;
}

bool ShardedUnit::has_gradients() const {
  return std::ranges::any_of(parameters_, [](const auto& each) { return each.gradient().defined(); });
}

void ShardedUnit::keep_gradients() {
  const OwnWork own;
  for (auto& each : parameters_) each.keep_gradient(reduce_dtype_);
}

std::int64_t ShardedUnit::padded_elements(const std::vector<std::size_t>& parameters) const {
  std::int64_t sum = 0;
  for (const std::size_t i : parameters) sum += parameters_[i].layout().padded_elements();
  return sum;
}

// Names the parameters if some gradients of the unit are missing. Otherwise ranks could sum the gradients of different
// parameters of the same size.
std::string ShardedUnit::gradients_text(const std::vector<std::size_t>& parameters) const {
  const auto trained = std::ranges::count_if(parameters_, [](const auto& each) { return each.is_trained(); });
  const bool are_all = static_cast<std::size_t>(trained) == parameters.size();
  if (are_all && !names_parameters_) return text_ + ": gradients";
  std::vector<std::string> names;
  for (const std::size_t i : parameters) names.push_back(parameters_[i].name());
  return fmt::format("{}: gradients of {}{}", text_, fmt::join(names, ", "), are_all ? "" : " alone");
}

void ShardedUnit::start_reduce() {
  REHEARSE_CHECK(!reduction_, text_);
  const OwnWork own;
  Reduction reduction;
  reduction.parameters = with_gradients();
  const std::int64_t elements = padded_elements(reduction.parameters);
  const auto options = parameters_.front().whole().options().dtype(reduce_dtype_);
  at::Tensor input = make_buffer({group_->size(), elements}, options, !is_even_);
  std::int64_t offset = 0;
  for (const std::size_t i : reduction.parameters) {
    auto& parameter = parameters_[i];
    parameter.layout().copy_in(input, offset, parameter.take_gradient().contiguous());
    offset += parameter.layout().padded_elements();
  }
  if (reduce_dtype_ == at::kHalf) input.div_(group_->half_divisor());
  reduction.what = gradients_text(reduction.parameters);
  if (group_->size() > 1) {
    reduction.output = at::empty({elements}, options);
    reduction.work = group_->reduce_scatter(reduction.output, input.view(-1), reduction.what);
  } else {
    reduction.output = input.view(-1);
  }
  reduction_ = std::move(reduction);
}

void ShardedUnit::finish_reduce() {
  const OwnWork own;
  const Reduction reduction = std::move(*std::exchange(reduction_, std::nullopt));
  if (reduction.work) reduction.work->wait();
  if (group_->is_replicated()) group_->all_reduce_replicas(reduction.output, reduction.what)->wait();
  const double divisor =
      reduce_dtype_ == at::kHalf ? group_->ranks_of_mean() / group_->half_divisor() : group_->ranks_of_mean();
  if (divisor != 1) reduction.output.div_(divisor);
  std::int64_t offset = 0;
  for (const std::size_t i : reduction.parameters) {
    const auto& parameter = parameters_[i];
    const at::Tensor& shard = parameter.shard();
    parameter.add_to_shard(reduction.output.narrow(0, offset, shard.numel()).view(shard.sizes()));
    offset += parameter.layout().padded_elements();
  }
}

namespace {

// If the rank runs out of memory, the error says which units were whole.
template <class Act>
void with_units_in_error(const char* doing, const ShardedUnit& unit, const std::vector<ShardedUnit>& all, Act&& act) {
  try {
    act();
  } catch (c10::OutOfMemoryError& error) {
    std::vector<std::string> others;
    for (const auto& each : all) {
      if (each.is_whole()) others.push_back(each.text());
    }
    error.add_context(fmt::format("while FSDP {} {}; whole were: {}", doing, unit.text(),
                                  others.empty() ? "none" : some_names(others)));
    throw;
  }
}

}  // namespace

void make_whole(ShardedUnit& unit, const std::vector<ShardedUnit>& all) {
  with_units_in_error("fills", unit, all, [&] { unit.make_whole(); });
}

void start_gather(ShardedUnit& unit, const std::vector<ShardedUnit>& all) {
  with_units_in_error("gathers", unit, all, [&] { unit.start_gather(); });
}

void start_reduce(ShardedUnit& unit, const std::vector<ShardedUnit>& all) {
  with_units_in_error("reduces the gradients of", unit, all, [&] { unit.start_reduce(); });
}

}  // namespace rehearse::parallel

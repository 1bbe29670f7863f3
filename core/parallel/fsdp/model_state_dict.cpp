// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/model_state_dict.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "checks/values/module_tensors.h"

namespace rehearse::parallel {
namespace {

at::Tensor with_rows(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  return plain.dim() == 0 ? plain.unsqueeze(0) : plain;
}

// Collects the rows that this rank needs of one tensor, out of the rows that all ranks have saved. put() then copies
// them into the tensor.
class LoadedRows {
 public:
  // `own`: this rank's rows, which begin at row `first_row` of the whole. A tensor without dimensions counts as one
  // row. `must_agree`: if several ranks have saved a row, their values must be equal. Otherwise the last value counts,
  // as for buffers, which each rank has saved as a whole.
  LoadedRows(at::Tensor own, std::int64_t first_row, bool must_agree)
      : must_agree_(must_agree),
        own_(with_rows(own)),
        loaded_(at::empty_like(own_)),
        first_row_(first_row),
        has_(static_cast<std::size_t>(own_.size(0)), false) {}

  // Takes the rows that this rank needs. Throws c10::ValueError for rows that the whole does not have, and for values
  // that must agree and do not.
  void take(const SavedRows& saved) {
    const at::Tensor rows = with_rows(saved.rows);
    const std::int64_t all = saved.sizes.empty() ? 1 : saved.sizes[0];
    const std::int64_t end = saved.first_row + rows.size(0);
    TORCH_CHECK_VALUE(saved.first_row >= 0 && end <= all && rows.sizes().slice(1) == own_.sizes().slice(1),
                      "FSDP: rows ", saved.first_row, " to ", end, " of \"", saved.name, "\" have sizes ", rows.sizes(),
                      "; the whole has ", at::IntArrayRef(saved.sizes));
    const std::int64_t from = std::max(saved.first_row, first_row_);
    const std::int64_t count = std::min(end, first_row_ + own_.size(0)) - from;
    if (count <= 0) return;
    const at::Tensor target = loaded_.narrow(0, from - first_row_, count);
    const at::Tensor values = rows.narrow(0, from - saved.first_row, count).to(target.options());
    for (std::int64_t row = 0; must_agree_ && row < count; ++row) {
      if (!has_[static_cast<std::size_t>(from - first_row_ + row)]) continue;
      TORCH_CHECK_VALUE(values[row].allclose(target[row], 0, 0, /*equal_nan=*/true),
                        "FSDP: load_sharded_state_dict() has row ", from + row, " of \"", saved.name,
                        "\" twice, with other values");
    }
    target.copy_(values);
    std::fill_n(has_.begin() + (from - first_row_), count, true);
  }

  // Throws c10::ValueError, which names the first row that no rank has saved.
  void require_complete(const std::string& name) const {
    const auto missing = std::ranges::find(has_, false);
    TORCH_CHECK_VALUE(missing == has_.end(), "FSDP: load_sharded_state_dict() lacks row ",
                      first_row_ + (missing - has_.begin()), " of \"", name,
                      "\". Give it what every rank of the group has saved");
  }

  void put() { own_.copy_(loaded_); }

 private:
  const bool must_agree_;
  at::Tensor own_, loaded_;  // [rows, ...]
  std::int64_t first_row_;
  std::vector<bool> has_;  // by row
};

// One item of a model's state: a sharded parameter, or a tensor that each rank has as a whole.
struct StateTensor {
  std::string name;
  const ShardedUnit* unit = nullptr;  // null: whole
  const ShardedParameter* parameter = nullptr;
  at::Tensor tensor = {};               // if it is not sharded
  std::vector<std::string> names = {};  // all names of a tied parameter

  at::IntArrayRef sizes() const { return parameter != nullptr ? parameter->layout().sizes() : tensor.sizes(); }
};

std::vector<StateTensor> state_of(const ShardedModel& model) {
  std::vector<StateTensor> state;
  std::unordered_set<const c10::TensorImpl*> sharded;
  for (const auto& unit : model.units()) {
    for (const auto& each : unit.parameters()) {
      state.push_back({each.name(), &unit, &each, {}, each.names()});
      sharded.insert(each.tensor().unsafeGetTensorImpl());
    }
  }
  auto others = checks::each_once(checks::parameters_of(model.module()), {});
  std::erase_if(others, [&](const auto& each) { return sharded.contains(each.tensor.unsafeGetTensorImpl()); });
  for (auto& each : checks::each_once(checks::buffers_of(model.module()), {})) others.push_back(std::move(each));
  for (auto& each : others) state.push_back({each.name, nullptr, nullptr, each.tensor, {each.name}});
  return state;
}

const StateTensor& find(const std::vector<StateTensor>& state, const std::string& name, const char* call) {
  const auto found = std::ranges::find_if(
      state, [&](const auto& each) { return std::ranges::find(each.names, name) != each.names.end(); });
  TORCH_CHECK_VALUE(found != state.end(), "FSDP: ", call, " has \"", name,
                    "\", but the module has no parameter or buffer of that name");
  return *found;
}

const StateTensor& find_sharded(const std::vector<StateTensor>& state, const std::string& name, const char* call) {
  const auto& found = find(state, name, call);
  TORCH_CHECK_VALUE(found.parameter != nullptr, "FSDP: ", call, ": \"", name, "\" is whole on every rank");
  return found;
}

void require_sizes(const StateTensor& own, at::IntArrayRef sizes, const char* call) {
  TORCH_CHECK_VALUE(own.sizes() == sizes, "FSDP: ", call, " has \"", own.name, "\" of sizes ", sizes,
                    "; the module's has ", own.sizes());
}

void require_all(const std::vector<StateTensor>& state, const std::set<const StateTensor*>& seen, const char* call) {
  for (const auto& each : state) {
    TORCH_CHECK_VALUE(seen.contains(&each), "FSDP: ", call, " lacks \"", each.name, "\" of the module");
  }
}

void require_values(const ShardedModel& model, const char* call) {
  for (const auto& unit : model.units()) {
    for (const auto& each : unit.parameters()) each.require_values(unit.text(), call);
  }
}

void note_values(ShardedModel& model) {
  for (auto& unit : model.units()) {
    for (auto& each : unit.parameters()) each.note_values();
  }
}

at::Tensor own_rows(const ShardedModel& model, const ShardedParameter& parameter, const at::Tensor& whole) {
  const auto& layout = parameter.layout();
  const int rank = model.group().rank();
  return whole.narrow(0, layout.first_row(rank), layout.rows_of(rank));
}

}  // namespace

NamedTensors gather_state(const ShardedModel& model) {
  model.require_idle("full_state_dict()");
  require_values(model, "full_state_dict()");
  const at::NoGradGuard no_grad;
  NamedTensors result;
  for (const auto& unit : model.units()) {
    const auto whole = unit.gather_values();
    for (std::size_t i = 0; i < whole.size(); ++i) result.emplace_back(unit.parameters()[i].name(), whole[i]);
  }
  for (const auto& each : state_of(model)) {
    if (each.parameter == nullptr) result.emplace_back(each.name, each.tensor.detach().clone());
  }
  return result;
}

void load_whole_state(ShardedModel& model, const NamedTensors& given) {
  constexpr const char* kCall = "load_full_state_dict()";
  model.require_idle(kCall);
  const at::NoGradGuard no_grad;
  const auto state = state_of(model);
  std::set<const StateTensor*> seen;
  for (const auto& [name, tensor] : given) {
    const auto& own = find(state, name, kCall);
    require_sizes(own, tensor.sizes(), kCall);
    TORCH_CHECK_VALUE(seen.insert(&own).second, "FSDP: ", kCall, " has \"", name, "\" twice");
  }
  require_all(state, seen, kCall);
  for (const auto& [name, tensor] : given) {
    const auto& own = find(state, name, kCall);
    if (own.parameter != nullptr) {
      own.parameter->shard().detach().copy_(own_rows(model, *own.parameter, tensor));
    } else {
      own.tensor.detach().copy_(tensor);
    }
  }
  note_values(model);
}

std::vector<SavedRows> own_rows_of_state(const ShardedModel& model) {
  model.require_idle("sharded_state_dict()");
  require_values(model, "sharded_state_dict()");
  const int rank = model.group().rank();
  std::vector<SavedRows> result;
  for (const auto& each : state_of(model)) {
    const auto sizes = each.sizes().vec();
    if (each.parameter != nullptr) {
      const auto& parameter = *each.parameter;
      result.push_back({each.name, sizes, parameter.layout().first_row(rank), parameter.shard().detach().clone()});
    } else {
      result.push_back({each.name, sizes, 0, each.tensor.detach().clone()});
    }
  }
  return result;
}

void load_rows_of_state(ShardedModel& model, const std::vector<SavedRows>& given) {
  constexpr const char* kCall = "load_sharded_state_dict()";
  model.require_idle(kCall);
  const at::NoGradGuard no_grad;
  const auto state = state_of(model);
  std::map<const StateTensor*, LoadedRows> loaded;
  for (const auto& each : given) {
    const auto& own = find(state, each.name, kCall);
    require_sizes(own, each.sizes, kCall);
    if (!loaded.contains(&own)) {
      const std::int64_t first = own.parameter ? own.parameter->layout().first_row(model.group().rank()) : 0;
      const bool is_sharded = own.parameter != nullptr;
      loaded.emplace(&own, LoadedRows(is_sharded ? own.parameter->shard() : own.tensor, first, is_sharded));
    }
    loaded.at(&own).take(each);
  }
  for (const auto& each : state) {
    TORCH_CHECK_VALUE(loaded.contains(&each), "FSDP: ", kCall, " lacks \"", each.name, "\" of the module");
    loaded.at(&each).require_complete(each.name);
  }
  for (auto& [own, rows] : loaded) rows.put();
  note_values(model);
}

at::Tensor gather_like(const ShardedModel& model, const std::string& parameter, const at::Tensor& rows) {
  constexpr const char* kCall = "gather_like()";
  model.require_idle(kCall);
  const auto state = state_of(model);
  const auto& own = find_sharded(state, parameter, kCall);
  TORCH_CHECK_VALUE(rows.sizes() == own.parameter->shard().sizes(), "FSDP: ", kCall, " was given sizes ", rows.sizes(),
                    " for \"", parameter, "\", whose shard has ", own.parameter->shard().sizes());
  return own.unit->gather_rows(*own.parameter, rows);
}

at::Tensor rows_like(const ShardedModel& model, const std::string& parameter, const at::Tensor& whole) {
  constexpr const char* kCall = "rows_like()";
  const auto state = state_of(model);
  const auto& own = find_sharded(state, parameter, kCall);
  require_sizes(own, whole.sizes(), kCall);
  return own_rows(model, *own.parameter, whole).clone();
}

}  // namespace rehearse::parallel

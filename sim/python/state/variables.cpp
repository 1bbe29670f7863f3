// SPDX-License-Identifier: BSD-3-Clause
#include "python/state/variables.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rehearse::python {
namespace {

#if PY_VERSION_HEX >= 0x030C0000
// The watched dictionaries that have changed, by the bits of a word for each.
std::vector<std::pair<PyObject*, bool>> g_changed;

int note_change(PyDict_WatchEvent, PyObject* dictionary, PyObject*, PyObject*) {
  for (auto& [watched, changed] : g_changed) {
    if (watched == dictionary) changed = true;
  }
  return 0;
}

bool& changed_of(PyObject* dictionary) noexcept {
  return std::find_if(g_changed.begin(), g_changed.end(), [=](const auto& each) { return each.first == dictionary; })
      ->second;
}
#endif

// A list, whose items a snapshot can keep, or a dictionary without entries.
bool can_be_shared(PyObject* value) noexcept {
  return PyList_CheckExact(value) || (PyDict_Check(value) && PyDict_GET_SIZE(value) == 0);
}

}  // namespace

#if PY_VERSION_HEX >= 0x030C0000
WatchedDictionary::WatchedDictionary(PyObject* dictionary) : dictionary_(dictionary) {
  static const int watcher = PyDict_AddWatcher(note_change);
  Py_INCREF(dictionary);
  g_changed.emplace_back(dictionary, true);
  if (watcher < 0 || PyDict_Watch(watcher, dictionary) != 0) PyErr_Clear();
}
bool WatchedDictionary::has_changed() const noexcept { return changed_of(dictionary_); }
void WatchedDictionary::look() noexcept { changed_of(dictionary_) = false; }
#else
WatchedDictionary::WatchedDictionary(PyObject* dictionary) : dictionary_(dictionary) { Py_INCREF(dictionary); }
bool WatchedDictionary::has_changed() const noexcept {
  return reinterpret_cast<const PyDictObject*>(dictionary_)->ma_version_tag != seen_;
}
void WatchedDictionary::look() noexcept { seen_ = reinterpret_cast<const PyDictObject*>(dictionary_)->ma_version_tag; }
#endif

void Variables::add(PyObject* dictionary, PyObject* name, PyObject* fresh, PyTypeObject* type) {
  const auto known = std::find_if(dictionaries_.begin(), dictionaries_.end(),
                                  [=](const WatchedDictionary& each) { return each.get() == dictionary; });
  const auto index = static_cast<std::size_t>(known - dictionaries_.begin());
  if (known == dictionaries_.end()) dictionaries_.emplace_back(dictionary);
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  Py_XINCREF(type);
  if (fresh == Py_None) fresh = nullptr;
  Py_XINCREF(fresh);
  all_.push_back({index, name, fresh, type});
}

Variables::Values& Variables::values_of(int rank) {
  const auto index = static_cast<std::size_t>(rank) + 1;  // 0 for rank -1
  if (index >= of_ranks_.size()) of_ranks_.resize(index + 1);
  auto& values = of_ranks_[index];
  values.live.resize(all_.size());
  values.reserve.resize(all_.size());
  return values;
}

bool Variables::begin_world() {
  auto& host = values_of(-1);
  save(host);
  shared_.clear();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    auto& variable = all_[i];
    Py_CLEAR(variable.shared);
    Py_CLEAR(variable.items);
    if (variable.fresh == nullptr || host.live[i] == nullptr || !can_be_shared(host.live[i])) continue;
    PyObject* const reserve = PyObject_CallOneArg(variable.fresh, host.live[i]);
    if (reserve == nullptr) return false;
    Py_XSETREF(host.reserve[i], reserve);
    Py_INCREF(host.live[i]);
    variable.shared = host.live[i];
    if (PyList_CheckExact(variable.shared)) variable.items = PyList_AsTuple(variable.shared);
    shared_.push_back(i);
  }
  return true;
}

bool Variables::begin_rank(int rank) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto& variable = all_[i];
    PyObject* value = values_of(-1).live[i];
    if (value == nullptr) continue;
    Py_INCREF(value);
    if (variable.fresh != nullptr) {
      PyObject* const fresh = PyObject_CallOneArg(variable.fresh, value);
      if (fresh == nullptr) return false;
      auto& keeper = variable.shared != nullptr ? values_of(rank).reserve[i] : value;
      Py_XSETREF(keeper, fresh);
      if (variable.shared != nullptr) {
        Py_INCREF(variable.shared);
        Py_SETREF(value, variable.shared);
      }
    }
    set(variable, value);
    Py_XSETREF(values_of(rank).live[i], value);
  }
  return true;
}

bool Variables::is_unchanged(const Variable& variable) noexcept {
  if (variable.items == nullptr) return PyDict_GET_SIZE(variable.shared) == 0;
  const auto size = PyList_GET_SIZE(variable.shared);
  return size == PyTuple_GET_SIZE(variable.items) &&
         std::equal(reinterpret_cast<PyListObject*>(variable.shared)->ob_item,
                    reinterpret_cast<PyListObject*>(variable.shared)->ob_item + size,
                    reinterpret_cast<PyTupleObject*>(variable.items)->ob_item);
}

// The rank has changed what all share.
void Variables::give_to(int rank, std::size_t index) noexcept {
  auto& variable = all_[index];
  for (std::size_t i = 0; i < of_ranks_.size(); ++i) {
    auto& values = of_ranks_[i];
    if (static_cast<int>(i) == rank + 1 || values.live.empty() || values.live[index] != variable.shared) continue;
    replace(values.live[index], std::exchange(values.reserve[index], nullptr), values);
  }
  replace(variable.shared, nullptr, values_of(rank));
  replace(variable.items, nullptr, values_of(rank));
}

// The last reference to an object runs code when it goes.
void Variables::replace(PyObject*& value, PyObject* by, Values& owner) {
  PyObject* const old = std::exchange(value, by);
  if (old == nullptr) return;
  if (Py_REFCNT(old) == 1 && !PyUnicode_CheckExact(old) && !PyLong_CheckExact(old))
    return owner.replaced.push_back(old);
  Py_DECREF(old);
}

void Variables::release_soon() noexcept {
  if (will_release_ || values_of(running_).replaced.empty()) return;
  will_release_ = Py_AddPendingCall(&Variables::release_replaced, this) == 0;
}

int Variables::release_replaced(void* variables) {
  auto& self = *static_cast<Variables*>(variables);
  self.will_release_ = false;
  for (PyObject* each : std::exchange(self.values_of(self.running_).replaced, {})) Py_DECREF(each);
  return 0;
}

void Variables::set(const Variable& variable, PyObject* value) noexcept {
  if (PyDict_SetItem(dictionaries_[variable.dictionary].get(), variable.name, value) != 0) PyErr_Clear();
  if (variable.type != nullptr) PyType_Modified(variable.type);
}

void Variables::save(Values& leaving) noexcept {
  for (std::size_t d = 0; d < dictionaries_.size(); ++d) {
    if (!dictionaries_[d].has_changed()) continue;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].dictionary != d) continue;
      PyObject* live = PyDict_GetItemWithError(dictionaries_[d].get(), all_[i].name);
      if (live == leaving.live[i]) continue;
      Py_XINCREF(live);
      if (live != nullptr && PyUnicode_CheckExact(live)) PyUnicode_InternInPlace(&live);  // equal texts are one value
      replace(leaving.live[i], live, leaving);
    }
  }
}

void Variables::exchange(int from, int to) noexcept {
  values_of(to);  // may move the values of `from`
  Values& leaving = values_of(from);
  Values& coming = values_of(to);
  save(leaving);
  for (std::size_t i = 0; i < shared_.size();) {
    const auto index = shared_[i];
    if (all_[index].shared != nullptr && is_unchanged(all_[index])) {
      ++i;
      continue;
    }
    if (all_[index].shared != nullptr) give_to(from, index);
    shared_.erase(shared_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (coming.live[i] == nullptr) {
      Py_XINCREF(leaving.live[i]);
      coming.live[i] = leaving.live[i];
    } else if (coming.live[i] != leaving.live[i]) {
      set(all_[i], coming.live[i]);
    }
  }
  for (auto& dictionary : dictionaries_) dictionary.look();
  running_ = to;
}

void Variables::forget_ranks() noexcept {
  for (std::size_t i = 1; i < of_ranks_.size(); ++i) {
    for (PyObject*& value : of_ranks_[i].live) Py_CLEAR(value);
    for (PyObject*& value : of_ranks_[i].reserve) Py_CLEAR(value);
    for (PyObject* value : std::exchange(of_ranks_[i].replaced, {})) Py_DECREF(value);
  }
}

}  // namespace rehearse::python

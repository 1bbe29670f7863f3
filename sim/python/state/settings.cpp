// SPDX-License-Identifier: BSD-3-Clause
#include "python/state/settings.h"

namespace rehearse::python {
namespace {

bool are_equal(PyObject* a, PyObject* b) noexcept {
  const int equal = a == b ? 1 : PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

}  // namespace

std::size_t Settings::add(PyObject* set, PyObject* of_host) {
  Py_INCREF(set);
  Py_INCREF(of_host);
  all_.push_back({set, of_host, of_host});
  return all_.size() - 1;
}

PyObject*& Settings::of_rank(int rank, std::size_t setting) {
  if (rank < 0) return all_[setting].of_host;
  const auto index = static_cast<std::size_t>(rank);
  if (index >= of_ranks_.size()) of_ranks_.resize(index + 1);
  of_ranks_[index].resize(all_.size());
  return of_ranks_[index][setting];
}

void Settings::note(int rank, std::size_t setting, PyObject* arguments) {
  Py_INCREF(arguments);
  auto& own = of_rank(rank, setting);
  all_[setting].live = arguments;
  Py_XSETREF(own, arguments);
}

void Settings::exchange(int to) noexcept {
  if (of_ranks_.empty()) return;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    auto& setting = all_[i];
    PyObject* const own = to < 0 ? nullptr : of_rank(to, i);
    PyObject* const coming = own != nullptr ? own : setting.of_host;
    if (!are_equal(setting.live, coming)) {
      PyObject* const result = PyObject_Call(setting.set, PyTuple_GET_ITEM(coming, 0), PyTuple_GET_ITEM(coming, 1));
      result == nullptr ? PyErr_Clear() : Py_DECREF(result);
    }
    setting.live = coming;
  }
}

void Settings::forget_ranks() noexcept {
  for (auto& settings : of_ranks_) {
    for (PyObject* each : settings) Py_XDECREF(each);
  }
  of_ranks_.clear();
}

}  // namespace rehearse::python

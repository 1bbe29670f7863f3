// SPDX-License-Identifier: BSD-3-Clause
#include "python/state/variables.h"

#include "python/state/cpython.h"

namespace rehearse::python {

void Variables::add(PyObject* dictionary, PyObject* name) {
  Py_INCREF(dictionary);
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  all_.push_back({dictionary, name, nullptr});
}

void Variables::add_of_class(PyTypeObject* type, PyObject* name) {
  Py_INCREF(type);
  add(dictionary_of(type), name);
  all_.back().type = type;
}

Variables::Values& Variables::values_of(int rank) {
  const auto index = static_cast<std::size_t>(rank) + 1;  // 0 for rank -1
  if (index >= of_ranks_.size()) of_ranks_.resize(index + 1);
  auto& values = of_ranks_[index];
  values.resize(all_.size());
  return values;
}

// Replacing a value may release the last reference to it, which runs code. So each live value is kept.
void Variables::exchange(int from, int to) noexcept {
  values_of(to);  // may move the values of `from`
  Values& leaving = values_of(from);
  const Values& coming = values_of(to);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Variable& variable = all_[i];
    PyObject* const live = PyDict_GetItemWithError(variable.dictionary, variable.name);
    Py_XINCREF(live);
    Py_XSETREF(leaving[i], live);
    if (coming[i] == nullptr || coming[i] == live) continue;
    if (PyDict_SetItem(variable.dictionary, variable.name, coming[i]) != 0) PyErr_Clear();
    if (variable.type != nullptr) PyType_Modified(variable.type);
  }
}

void Variables::forget_ranks() noexcept {
  for (std::size_t i = 1; i < of_ranks_.size(); ++i) {
    for (PyObject*& value : of_ranks_[i]) Py_CLEAR(value);
  }
}

}  // namespace rehearse::python

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Python.h>

#include <cstddef>
#include <vector>

namespace rehearse::python {

// Python variables of which each rank has its own: entries of dictionaries that all ranks share, such as those of
// torch's modules. A switch between ranks exchanges their values. The values of host code count as those of rank -1.
class Variables {
 public:
  // Keeps references to both for the life of the process.
  void add(PyObject* dictionary, PyObject* name);
  void add_of_class(PyTypeObject* type, PyObject* name);

  bool empty() const noexcept { return all_.empty(); }
  // Saves the live values as those of `from` and makes those of `to` live; a rank without a value yet finds the live
  // one. A thread state must be attached.
  void exchange(int from, int to) noexcept;
  // Forgets the values of ranks; the host's stay live.
  void forget_ranks() noexcept;

 private:
  struct Variable {
    PyObject* dictionary;
    PyObject* name;
    PyTypeObject* type;  // null: it is no class's
  };
  using Values = std::vector<PyObject*>;  // by variable; null: none

  Values& values_of(int rank);

  std::vector<Variable> all_;
  std::vector<Values> of_ranks_;  // by rank + 1
};

}  // namespace rehearse::python

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rehearse::python {

// A dictionary that tells whether it has changed since a look.
class WatchedDictionary {
 public:
  explicit WatchedDictionary(PyObject* dictionary);  // keeps a reference for the life of the process

  PyObject* get() const noexcept { return dictionary_; }
  bool has_changed() const noexcept;
  void look() noexcept;

 private:
  PyObject* dictionary_;
  std::uint64_t seen_ = 0;  // the version of the dictionary; where versions do not exist, 1: nothing has changed
};

// Python variables of which each rank has its own: entries of dictionaries that all ranks share, such as those of
// torch's modules. A switch between ranks exchanges their values. The values of host code count as those of rank -1.
//
// Most ranks leave most variables alone. So ranks share a list, or an empty dictionary, until one of them has changed
// it: that rank keeps it, and the others get what was made for them when they began.
class Variables {
 public:
  // `fresh`: makes the value of a new rank from that of the host; None: a new rank gets the host's. `type`: null, or
  // the class of whose dictionary this is. Keeps references to all for the life of the process.
  void add(PyObject* dictionary, PyObject* name, PyObject* fresh, PyTypeObject* type = nullptr);

  bool empty() const noexcept { return all_.empty(); }
  // A thread state must be attached in all that follow. Ranks begin with the values that live now; false: a Python
  // exception is set.
  bool begin_world();
  // Gives the running rank its first values; false: a Python exception is set.
  bool begin_rank(int rank);
  // Saves the live values as those of `from` and makes those of `to` live. It runs no code of objects.
  void exchange(int from, int to) noexcept;
  // What exchanges replaced in the running rank is released when a main thread next makes CPython's pending calls.
  void release_soon() noexcept;
  // Forgets the values of ranks; the host's stay live.
  void forget_ranks() noexcept;

 private:
  struct Variable {
    std::size_t dictionary;  // index into dictionaries_
    PyObject* name;
    PyObject* fresh;     // null: none
    PyTypeObject* type;  // null: it is no class's
    // What ranks share until one of them has changed it, and a tuple of the items of a list; null: nothing.
    PyObject* shared = nullptr;
    PyObject* items = nullptr;
  };
  struct Values {
    std::vector<PyObject*> live, reserve;  // by variable; null: none
    std::vector<PyObject*> replaced;       // to be released
  };

  Values& values_of(int rank);
  void share(std::size_t variable, PyObject* value, PyObject* reserve);
  void give_to(int rank, std::size_t variable) noexcept;
  void save(Values& leaving) noexcept;
  void set(const Variable& variable, PyObject* value) noexcept;
  static void replace(PyObject*& value, PyObject* by, Values& owner);
  static int release_replaced(void* variables);
  static bool is_unchanged(const Variable& variable) noexcept;

  std::vector<Variable> all_;
  std::vector<WatchedDictionary> dictionaries_;
  std::vector<std::size_t> shared_;  // variables that ranks share
  std::vector<Values> of_ranks_;     // by rank + 1
  int running_ = -1;                 // the rank whose values are live
  bool will_release_ = false;        // a pending call is on its way
};

}  // namespace rehearse::python

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <rehearse/compile/argument_walk.h>
#include <rehearse/compile/leaf.h>

// The sinks for walk().
namespace rehearse::compiler {

// Puts the leaves into a list.
class LeafSink {
 public:
  explicit LeafSink(LeafList& leaves) : leaves_(leaves) {}
  void tensor(const at::Tensor& value) { leaves_.push_back(Leaf::of(value)); }
  void sym_int(const c10::SymInt& value) { leaves_.push_back(Leaf::of(value)); }
  void text(const std::string& value) { leaves_.push_back(Leaf::of(value)); }
  void group(c10d::ProcessGroup* value) { leaves_.push_back(Leaf::of_group(value)); }
  void real(double value) { leaves_.push_back(Leaf::of(value)); }
  void number(LeafKind kind, std::int64_t value) { leaves_.push_back(Leaf::of(kind, value)); }
  void enter(std::size_t) {}
  void enter(const char*) {}
  void leave() {}

 private:
  LeafList& leaves_;
};

// Names where each leaf comes from, in C++'s notation: "x", "xs[1]", "batch.ids". A key of a map counts as a field if
// it is a text ("by_name.a"), and as an index if it is an integer ("by_rank[3]").
class SourceSink {
 public:
  explicit SourceSink(std::vector<std::string>& sources) : sources_(sources) {}
  void tensor(const at::Tensor&) { add(); }
  void sym_int(const c10::SymInt&) { add(); }
  void text(const std::string&) { add(); }
  void group(c10d::ProcessGroup*) { add(); }
  void real(double) { add(); }
  void number(LeafKind, std::int64_t) { add(); }
  void enter(std::size_t index) { enter_path("[" + std::to_string(index) + "]"); }
  void enter(const char* name) { enter_path("." + std::string(name)); }
  void leave() {
    path_.resize(lengths_.back());
    lengths_.pop_back();
  }

  // Starts the next argument.
  void begin(std::string name) { path_ = std::move(name); }

 private:
  void add() { sources_.push_back(path_); }
  void enter_path(const std::string& part) {
    lengths_.push_back(path_.size());
    path_ += part;
  }

  std::vector<std::string>& sources_;
  std::string path_;
  std::vector<std::size_t> lengths_;
};

// Stand-ins for leaves, by the index of the leaf. A leaf without one (undefined tensor, plain number) stays as it is.
struct StandIns {
  std::vector<at::Tensor> tensors;
  std::vector<c10::SymInt> ints;
};

// Replaces tensors and symbolic integers by their stand-ins.
class StandInSink {
 public:
  explicit StandInSink(const StandIns& stand_ins) : stand_ins_(stand_ins) {}
  void tensor(at::Tensor& value) {
    if (const at::Tensor& stand_in = stand_ins_.tensors[next_++]; stand_in.defined()) value = stand_in;
  }
  void sym_int(c10::SymInt& value) {
    if (const c10::SymInt& stand_in = stand_ins_.ints[next_++]; stand_in.is_symbolic()) value = stand_in;
  }
  void text(const std::string&) { ++next_; }
  void group(c10d::ProcessGroup*) { ++next_; }
  void real(double) { ++next_; }
  void number(LeafKind, std::int64_t) { ++next_; }
  void enter(std::size_t) {}
  void enter(const char*) {}
  void leave() {}

 private:
  const StandIns& stand_ins_;
  std::size_t next_ = 0;
};

// Calls tensor_fn(at::Tensor&) and int_fn(c10::SymInt&), and ignores other leaves.
template <class TensorFn, class IntFn>
class ValueSink {
 public:
  ValueSink(TensorFn& tensor_fn, IntFn& int_fn) : tensor_fn_(tensor_fn), int_fn_(int_fn) {}
  void tensor(at::Tensor& value) { tensor_fn_(value); }
  void sym_int(c10::SymInt& value) { int_fn_(value); }
  void text(const std::string&) {}
  void group(c10d::ProcessGroup*) {}
  void real(double) {}
  void number(LeafKind, std::int64_t) {}
  void enter(std::size_t) {}
  void enter(const char*) {}
  void leave() {}

 private:
  TensorFn& tensor_fn_;
  IntFn& int_fn_;
};

// Visits the tensors and symbolic integers in `value`, in order.
template <class T, class TensorFn, class IntFn>
void for_each_value(T& value, TensorFn&& tensor_fn, IntFn&& int_fn) {
  ValueSink<std::remove_reference_t<TensorFn>, std::remove_reference_t<IntFn>> sink(tensor_fn, int_fn);
  walk(value, sink);
}

}  // namespace rehearse::compiler

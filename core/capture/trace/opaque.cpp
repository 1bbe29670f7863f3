// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/opaque.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include <dlfcn.h>
#include <fmt/format.h>

#include <rehearse_internal/exec/rank_of_thread.h>
#include <rehearse_internal/operators/own_operator.h>

namespace rehearse::capture::detail {
namespace {

// The types of functions in different files may have one name, and a generic function has a body for each number of
// tensors. So the name also contains the body's offset in the executable or library, which differs for each body. It is
// the same in every process, because graphs that the compile cache has stored contain names.
std::string name_of(const char* type, OpaqueBody body) {
  const auto address = reinterpret_cast<std::uintptr_t>(body);
  Dl_info file{};
  if (dladdr(reinterpret_cast<void*>(body), &file) == 0) return fmt::format("{}@{:x}", type, address);
  return fmt::format("{}@{:x}", type, address - reinterpret_cast<std::uintptr_t>(file.dli_fbase));
}

// All bodies by name. If each rank has its own copy of a program, a name has a body in each copy, and a rank runs its
// own, which works with the rank's globals. All other bodies are the same for all ranks of the process.
class Bodies {
 public:
  // Returns the name of the body.
  std::string add(const char* type, OpaqueBody body) {
    const std::lock_guard lock(mutex_);
    std::string& name = names_[body];
    if (name.empty()) {  // dladdr() is slow
      name = name_of(type, body);
      bodies_.emplace(name, body);
    }
    // Ranks of a later world on this thread may have other copies, so an older entry must not stay.
    if (!copies_.empty() || bodies_.at(name) != body) copies_[this_rank(name)] = body;
    return name;
  }
  OpaqueBody at(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (!copies_.empty()) {
      const auto own = copies_.find(this_rank(name));
      if (own != copies_.end()) return own->second;
    }
    const auto found = bodies_.find(name);
    if (found == bodies_.end())
      throw std::out_of_range("rehearse::opaque: this program has not called '" + name + "' so far");
    return found->second;
  }

 private:
  // Worlds on different threads have different ranks.
  using OfRank = std::tuple<std::string, std::thread::id, int>;

  static OfRank this_rank(const std::string& name) {
    return {name, std::this_thread::get_id(), exec::rank_of_thread().rank};
  }

  std::mutex mutex_;
  std::map<OpaqueBody, std::string> names_;
  std::map<std::string, OpaqueBody> bodies_;  // the first body of each name
  std::map<OfRank, OpaqueBody> copies_;
};

Bodies& bodies() {
  static Bodies all;
  return all;
}

std::vector<at::Tensor> opaque_kernel(const std::string& name, const std::vector<at::Tensor>& tensors) {
  return bodies().at(name)(tensors);
}

}  // namespace

std::vector<at::Tensor> call_opaque(const char* type, OpaqueBody body, const std::vector<at::Tensor>& tensors) {
  static const auto op = operators::own_operator("opaque", "(str name, Tensor[] tensors) -> Tensor[]", &opaque_kernel,
                                                 operators::Derivative::by_its_calls);
  return op.call(bodies().add(type, body), tensors);
}

}  // namespace rehearse::capture::detail

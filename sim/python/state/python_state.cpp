// SPDX-License-Identifier: BSD-3-Clause
#include "python/state/python_state.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "exec/fiber/fiber.h"
#include "exec/interpose/world_state.h"

namespace rehearse::python {
namespace {

void save(const SharedBytes& shared, auto& own) {
  own.ends = shared.ends();
  own.all.assign(shared.live, shared.live + shared.size);
}

// The interpreter lock is the thread's that all ranks share, so libc's own functions take it.
struct AsThread {
  exec::Fiber* const fiber = std::exchange(exec::t_current_fiber, nullptr);
  ~AsThread() { exec::t_current_fiber = fiber; }
};

void attach(PyThreadState* state) noexcept {
  const AsThread thread;
  PyEval_RestoreThread(state);
}

void detach() noexcept {
  const AsThread thread;
  PyEval_SaveThread();
}

}  // namespace

// The caller has attached no state, so that of the host is the thread's.
PythonState::PythonState(Exchanged& exchanged, torch_state::TorchRankState& inner)
    : exchanged_(exchanged),
      inner_(inner),
      host_id_(*exchanged.main_thread.id),
      host_state_(PyGILState_GetThisThreadState()),
      host_main_state_(exchanged.main_thread.state != nullptr ? *exchanged.main_thread.state : nullptr) {
  for (std::size_t i = 0; i < exchanged_.of_ranks.size(); ++i) save(exchanged_.of_ranks[i], bytes_of(-1)[i]);
  attach(host_state_);
  const bool begins = exchanged_.variables.begin_world();
  if (!begins) PyErr_Print();
  detach();
  if (!begins) throw std::runtime_error("a variable of ranks has no first value");
}

PythonState::~PythonState() {
  attach(host_state_);
  exchanged_.variables.forget_ranks();
  exchanged_.settings.forget_ranks();
  detach();
}

void PythonState::create_image(std::byte* image, int rank, std::uint32_t fiber) {
  inner_.create_image(image + sizeof(Head), rank, fiber);
  auto generator = inner_.generator(rank);
  if (fiber == 0) {
    generator.set_pyobj(exchanged_.default_generator_object);
    auto as_of_host = bytes_of(-1);
    bytes_of(rank) = std::move(as_of_host);
  }
  Head head;
  head.generator = generator.unsafeGetGeneratorImpl();
  head.rank = rank;
  std::memcpy(image, &head, sizeof head);
}

PyThreadState* PythonState::state_in(const std::byte* image) noexcept {
  Head head;
  std::memcpy(&head, image, sizeof head);
  return attached_state() != nullptr ? head.own : nullptr;
}

void PythonState::exchange(std::byte* out, const std::byte* in) noexcept {
  Head next;
  std::memcpy(&next, in, sizeof next);
  const Head now{attached_state(), PyGILState_GetThisThreadState(), *exchanged_.default_generator, rank_};
  std::memcpy(out, &now, sizeof now);
  if (rank_ != next.rank) exchange_rank(next.rank, next.own, now.attached != nullptr);
  *exchanged_.default_generator = next.generator;
  if (now.attached != nullptr && next.attached == nullptr) {
    detach();
  } else if (now.attached != nullptr && now.attached != next.attached) {
    PyThreadState_Swap(next.attached);
  }
  inner_.exchange(out + sizeof(Head), in + sizeof(Head));
  if (now.attached == nullptr && next.attached != nullptr) attach(next.attached);
}

// Dictionaries ask the attached state for the interpreter (3.12 and later), so there must be one. Where PyGILState
// keeps its state in a thread-local (3.15), attaching the fiber's own state also makes it that of the thread.
void PythonState::exchange_rank(int to, PyThreadState* own, bool is_attached) noexcept {
  if (!exchanged_.variables.empty()) {
    if (!is_attached) attach(own != nullptr && to >= 0 ? own : host_state_);
    exchanged_.variables.exchange(rank_, to);
    {
      const AsThread thread;
      exchanged_.settings.exchange(to);
    }
    if (!is_attached) detach();
  }
  exchange_bytes(rank_, to);
  rank_ = to;
  name_main_thread();
  const AsThread thread;
  exchanged_.variables.release_soon();
}

void PythonState::exchange_bytes(int from, int to) noexcept {
  const auto& coming = bytes_of(to);  // may move those of `from`
  auto& leaving = bytes_of(from);
  for (std::size_t i = 0; i < coming.size(); ++i) {
    const auto& shared = exchanged_.of_ranks[i];
    if (leaving[i].ends != shared.ends()) save(shared, leaving[i]);
    if (coming[i].ends != leaving[i].ends) std::memcpy(shared.live, coming[i].all.data(), shared.size);
  }
}

void PythonState::name_main_thread() noexcept {
  const auto& main = exchanged_.main_thread;
  *main.id = rank_ < 0 ? host_id_ : exec::interpose::ThreadTable::handle_of(rank_, 0);
  if (main.state == nullptr) return;
  auto* const own = rank_ >= 0 && static_cast<std::size_t>(rank_) < main_states_.size()
                        ? main_states_[static_cast<std::size_t>(rank_)]
                        : nullptr;
  *main.state = own != nullptr ? own : host_main_state_;
}

void PythonState::set_main_state(int rank, PyThreadState* state) noexcept {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= main_states_.size()) main_states_.resize(index + 1);
  main_states_[index] = state;
  name_main_thread();
}

std::vector<PythonState::OwnBytes>& PythonState::bytes_of(int rank) {
  const auto index = static_cast<std::size_t>(rank) + 1;
  if (index >= bytes_.size()) bytes_.resize(index + 1);
  bytes_[index].resize(exchanged_.of_ranks.size());
  return bytes_[index];
}

}  // namespace rehearse::python

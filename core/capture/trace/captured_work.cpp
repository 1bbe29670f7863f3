// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/captured_work.h"

#include <string>
#include <utility>

#include <rehearse_internal/capture/errors.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {

using graph::Node;

Node& CapturedWork::node(GraphBuilder& graph) {
  if (!is_item_) return call_;
  if (item_ == nullptr) item_ = &graph.item(call_, 1);
  return *item_;
}

bool CapturedWork::wait(std::chrono::milliseconds timeout) { return tracer().wait(*this, timeout); }

void CapturedWork::synchronize() { tracer().synchronize(*this); }

Tracer& CapturedWork::tracer() const {
  if (tracer_ != nullptr && Tracer::current() == tracer_) return *tracer_;
  throw NotCapturable("a Work of a captured call is used outside of the captured function",
                      "Wait for it in the function that made the call.", call_stack());
}

void CapturedWork::refuse(const char* method) const {
  throw NotCapturable(std::string("Work::") + method + "() is called on a Work of a captured call",
                      "Wait for it with wait(), or put the call into a rehearse::eager_region().", call_stack());
}

CapturedWorks::~CapturedWorks() {
  for (const auto& work : alive()) work->end_of_capture();
}

c10::intrusive_ptr<c10d::Work> CapturedWorks::make(Tracer& tracer, Node& call, bool is_item) {
  auto work = c10::make_intrusive<CapturedWork>(tracer, call, is_item);
  made_.emplace_back(work);
  return work;
}

std::vector<c10::intrusive_ptr<CapturedWork>> CapturedWorks::alive() const {
  std::vector<c10::intrusive_ptr<CapturedWork>> alive;
  for (const auto& made : made_) {
    if (auto work = made.lock()) alive.push_back(std::move(work));
  }
  return alive;
}

void CapturedWorks::check_outlived() const {
  const auto alive = this->alive();
  if (alive.empty()) return;
  throw NotCapturable("a Work outlives the captured function that made the call",
                      "Wait for it in the function, or make the call outside of it.",
                      alive.front()->call().meta().origin->site);
}

void CapturedWorks::set_real(const CapturedWork& work, c10::intrusive_ptr<c10d::Work> real) {
  real_.emplace(&work, std::move(real));
}

}  // namespace rehearse::capture

// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recorders/captured_work.h"

#include <string>
#include <utility>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/exec/check.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/recorders/collective_recorder.h"
#include "capture/trace/recorders/current_tracer.h"

namespace rehearse::capture {

using graph::Node;

Node& CapturedWork::node(GraphBuilder& graph) {
  if (!is_item_) return call_;
  if (item_ == nullptr) item_ = &graph.item(call_, 1);
  return *item_;
}

bool CapturedWork::wait(std::chrono::milliseconds timeout) { return recorder().wait(*this, timeout); }

void CapturedWork::synchronize() { recorder().synchronize(*this); }

CollectiveRecorder& CapturedWork::recorder() const {
  if (tracer_ != nullptr && current_tracer() == tracer_) return recorder_;
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

c10::intrusive_ptr<c10d::Work> CapturedWorks::make(const Tracer& tracer, CollectiveRecorder& recorder, Node& call,
                                                   bool is_item) {
  auto work = c10::make_intrusive<CapturedWork>(tracer, recorder, call, is_item);
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
  REHEARSE_CHECK(!real_.contains(&work), real_.size());
  real_.emplace(&work, std::move(real));
}

c10d::Work* CapturedWorks::find_real(const CapturedWork& work) const {
  const auto found = real_.find(&work);
  return found == real_.end() ? nullptr : found->second.get();
}

}  // namespace rehearse::capture

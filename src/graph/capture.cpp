#include "graph/capture.h"

#include <deque>
#include <mutex>
#include <utility>

#include "autograd/engine.h"
#include "graph/record.h"
#include "ops/operator.h"

namespace rushlight::graph {
namespace {

std::mutex& settings_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::deque<Settings>& all_settings() {
  static std::deque<Settings> settings(1);  // number 0 means none
  return settings;
}

// What became of a storage whose segment failed.
struct Failure {
  std::string text;
};

void release_failure(StorageImpl* storage) {
  delete static_cast<Failure*>(storage->context);
}

void fail_storages(Segment& segment, const std::string& text) {
  for (StorageImpl* storage : segment.storages) {
    if (storage->pending.load(std::memory_order_relaxed) && storage->release == release_pending) {
      storage->context = new Failure{text};
      storage->release = release_failure;
    }
  }
}

// Runs the session's segment and leaves it empty. The session's mutex is held.
void run_segment(Session& session, Break reason, std::string_view what) {
  Segment& segment = session.segment;
  session.ids.clear();
  bool work = false;
  for (const Node& node : segment.graph.nodes) {
    work = work || !is_view(node);
  }
  if (!work) {
    segment.clear();
    return;
  }
  segment.reason = reason;
  segment.what = std::string(what);
  const Settings& settings = settings_of(session.settings);
  session.running = true;
  ThreadState saved = thread_state;
  thread_state.doors = 0;
  thread_state.capture = 0;
  bool inference = std::exchange(making_inference_tensors, false);
  auto finish = [&] {
    thread_state = saved;
    making_inference_tensors = inference;
    session.running = false;
    segment.clear();
  };
  try {
    if (settings.fullgraph && reason == Break::Value) {
      fail(ErrorKind::Runtime, "compile",
           "fullgraph=True, but the function needs the value of a tensor before it is finished "
           "(item(), bool(), print, NumPy, ...): the graph would end at this line");
    }
    if (settings.observer) {
      settings.observer(segment);
    }
    settings.runner(segment);
    for (size_t i = 0; i < segment.storages.size(); ++i) {
      if (segment.storages[i]->pending.load(std::memory_order_relaxed) &&
          segment.is_live(static_cast<int>(i))) {
        fail(ErrorKind::Internal, "compile", "the back end did not compute storage ", i);
      }
    }
  } catch (const std::exception& error) {
    fail_storages(segment, error.what());
    finish();
    throw;
  }
  finish();
}

void flush(Session& session, Break reason, std::string_view what) {
  std::lock_guard<std::mutex> lock(session.mutex);
  run_segment(session, reason, what);
}

// Of any thread: the storage may belong to another thread's capture.
void compute(StorageImpl* storage) {
  if (storage->release == release_failure) {
    fail(ErrorKind::Runtime, "",
         "the tensor was never computed, since an operator before it failed: ",
         static_cast<Failure*>(storage->context)->text);
  }
  auto* session = static_cast<Session*>(storage->context);
  if (session == &this_session() && session->running) {
    fail(ErrorKind::Internal, "compile", "an operator reads a result that comes after it");
  }
  std::lock_guard<std::mutex> lock(session->mutex);
  if (storage->pending.load(std::memory_order_acquire)) {
    run_segment(*session, Break::Value, "");
  }
}

const bool installed = [] {
  compute_pending = compute;
  autograd::open_capture = open_capture;
  autograd::close_capture = close_capture;
  return true;
}();

}  // namespace

void Segment::clear() {
  for (StorageImpl* storage : storages) {
    release(storage);
  }
  storages.clear();
  graph.clear();
}

uint32_t register_settings(Settings settings) {
  std::lock_guard<std::mutex> lock(settings_mutex());
  all_settings().push_back(std::move(settings));
  return static_cast<uint32_t>(all_settings().size() - 1);
}

const Settings& settings_of(uint32_t number) {
  std::lock_guard<std::mutex> lock(settings_mutex());
  return all_settings().at(number);  // a deque: never moved
}

bool open_capture(uint32_t settings) {
  if (thread_state.capture != 0 || this_session().running) {
    return false;
  }
  this_session().settings = settings;
  thread_state.capture = settings;
  thread_state.doors |= kCaptureDoor;
  return true;
}

void close_capture(bool failing) {
  thread_state.capture = 0;
  thread_state.doors &= ~static_cast<uint32_t>(kCaptureDoor);
  try {
    flush(this_session(), Break::Close, "");
  } catch (...) {
    if (!failing) {
      throw;
    }
  }
}

bool is_capturing() {
  return thread_state.capture != 0;
}

void flush_capture() {
  if (thread_state.capture != 0 && !this_session().running) {
    flush(this_session(), Break::Value, "");
  }
}

void end_segment(const Invocation& inv) {
  flush(this_session(), Break::Operator, inv.op->name());
}

Suspend::Suspend() : doors_(thread_state.doors), capture_(thread_state.capture) {
  thread_state.doors &= ~static_cast<uint32_t>(kCaptureDoor);
  thread_state.capture = 0;
}

Suspend::~Suspend() {
  thread_state.doors =
      (thread_state.doors & ~static_cast<uint32_t>(kCaptureDoor)) | (doors_ & kCaptureDoor);
  thread_state.capture = capture_;
}

}  // namespace rushlight::graph

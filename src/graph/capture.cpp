#include "graph/capture.h"

#include <deque>
#include <mutex>
#include <unordered_map>
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

// The sessions that will write storages which were there before.
struct Writers {
  std::mutex mutex;
  std::unordered_map<const StorageImpl*, Session*> sessions;
};

Writers& writers() {
  static auto* made = new Writers;  // threads may outlive static objects
  return *made;
}

// The inputs have their memory: the segment that is about to write it may use it.
void unmark_written(Session& session) {
  if (session.written.empty()) {
    return;
  }
  std::lock_guard<std::mutex> lock(writers().mutex);
  for (StorageImpl* storage : session.written) {
    writers().sessions.erase(storage);
    storage->pending.store(false, std::memory_order_release);
  }
  session.written.clear();
}

// The session that makes or writes the storage; null where that is over.
Session* session_of(const StorageImpl* storage) {
  if (storage->release == release_pending) {
    return static_cast<Session*>(storage->context);
  }
  std::lock_guard<std::mutex> lock(writers().mutex);
  auto found = writers().sessions.find(storage);
  return found == writers().sessions.end() ? nullptr : found->second;
}

thread_local const char* reading = "";

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
  unmark_written(session);
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
  session.runner = std::this_thread::get_id();
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
  std::unique_lock<std::mutex> lock = lock_session(session);
  run_segment(session, reason, what);
}

// Of any thread: the storage may belong to another thread's capture.
void compute(StorageImpl* storage) {
  if (storage->release == release_failure) {
    fail(ErrorKind::Runtime, "",
         "the tensor was never computed, since an operator before it failed: ",
         static_cast<Failure*>(storage->context)->text);
  }
  Session* session = session_of(storage);
  if (session == nullptr) {
    return;
  }
  if (session->running && session->runner == std::this_thread::get_id()) {
    fail(ErrorKind::Internal, "compile", "an operator reads a result that comes after it");
  }
  std::unique_lock<std::mutex> lock = lock_session(*session);
  if (storage->pending.load(std::memory_order_acquire)) {
    run_segment(*session, Break::Value, reading);
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
  plan.reset();
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
  const Settings& chosen = settings_of(settings);
  this_session().locate = chosen.locate ? &chosen.locate : nullptr;
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

void flush_capture(std::string_view what) {
  if (thread_state.capture != 0 && !this_session().running) {
    flush(this_session(), Break::Value, what);
  }
}

Reading::Reading(const char* what) : before_(std::exchange(reading, what)) {}

Reading::~Reading() {
  reading = before_;
}

uint32_t suspend_capture(std::string_view what) {
  flush_capture(what);
  uint32_t suspended = thread_state.capture;
  thread_state.capture = 0;
  thread_state.doors &= ~static_cast<uint32_t>(kCaptureDoor);
  return suspended;
}

void resume_capture(uint32_t suspended) {
  if (suspended != 0) {
    thread_state.capture = suspended;
    thread_state.doors |= kCaptureDoor;
  }
}

void (*wait_for_segment)(std::mutex& mutex) = nullptr;

std::unique_lock<std::mutex> lock_session(Session& session) {
  std::unique_lock<std::mutex> lock(session.mutex, std::try_to_lock);
  if (lock.owns_lock()) {
    return lock;
  }
  if (wait_for_segment == nullptr) {
    session.mutex.lock();
  } else {
    wait_for_segment(session.mutex);
  }
  return std::unique_lock<std::mutex>(session.mutex, std::adopt_lock);
}

void mark_written(Session& session, StorageImpl* input) {
  if (input->pending.load(std::memory_order_relaxed)) {
    return;  // made or written already
  }
  {
    std::lock_guard<std::mutex> lock(writers().mutex);
    writers().sessions.emplace(input, &session);
  }
  session.written.push_back(input);
  input->pending.store(true, std::memory_order_release);
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

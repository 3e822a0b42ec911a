#include "graph/capture.h"

#include <rushlight/profiler.h>

#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "autograd/node_run.h"
#include "autograd/saved_tensor.h"
#include "graph/execute.h"
#include "graph/recipe.h"
#include "graph/record.h"
#include "ops/operator.h"
#include "runtime/log.h"
#include "runtime/parallel.h"
#include "tensor/pending.h"

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

void unmark_written(Session& session) {
  if (session.written.empty()) {
    return;
  }
  std::lock_guard<std::mutex> lock(writers().mutex);
  for (StorageImpl* storage : session.written) {
    writers().sessions.erase(storage);
    publish(storage);
  }
  session.written.clear();
}

// The sessions that run a segment now.
struct Runners {
  std::mutex mutex;
  std::vector<Session*> sessions;
};

Runners& runners() {
  static auto* made = new Runners;
  return *made;
}

// How many segments this thread runs (a back end in Python may read what another has captured).
thread_local int segments_run = 0;

class Running {
 public:
  explicit Running(Session& session) : session_(session) {
    session.running = true;
    session.runner = std::this_thread::get_id();
    ++segments_run;
    std::lock_guard<std::mutex> lock(runners().mutex);
    runners().sessions.push_back(&session);
  }
  ~Running() {
    {
      std::lock_guard<std::mutex> lock(runners().mutex);
      std::erase(runners().sessions, &session_);
    }
    --segments_run;
    session_.running = false;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Session& session_;
};

// The session that will make or write the storage; null where it is doing so, or has done it.
Session* session_of(StorageImpl* storage) {
  if (Session* session =
          session_at(std::atomic_ref(storage->context).load(std::memory_order_relaxed))) {
    return session;
  }
  std::lock_guard<std::mutex> lock(writers().mutex);
  auto found = writers().sessions.find(storage);
  return found == writers().sessions.end() ? nullptr : found->second;
}

thread_local const char* reading = "";

void fail_storages(Segment& segment, const std::string& text) {
  for (StorageImpl* storage : segment.storages) {
    if (storage->release == release_pending) {
      std::atomic_ref(storage->context).store(new Failure{text}, std::memory_order_relaxed);
      std::atomic_ref(storage->release).store(release_failure, std::memory_order_release);
    }
  }
}

void log_break(const Segment& segment) {
  const char* why = segment.reason == Break::Operator ? "shapes that depend on data" : "a value";
  const std::string line = profiler::locate == nullptr ? "" : profiler::locate();
  std::fprintf(stderr, "[breaks] %zu nodes; %s needs %s: %s\n", segment.graph.nodes.size(),
               segment.what.empty() ? "something" : segment.what.c_str(), why, line.c_str());
}

// Drops what only the list holds. That may run anything, so no session is locked.
void sweep(std::vector<Tensor>& saved) {
  for (size_t i = saved.size(); i-- > 0;) {  // what later ones hold came before them
    if (saved[i].impl()->references.load(std::memory_order_acquire) == 1) {
      saved[i] = Tensor();
    }
  }
  std::erase_if(saved, [](const Tensor& tensor) { return !tensor.defined(); });
}

// What autograd saved of the segment that this thread is about to run.
std::vector<Tensor> take_saved(Session& session) {
  std::vector<Tensor> saved;
  if (&session == &this_session()) {
    saved.swap(session.saved);
    sweep(saved);
  }
  return saved;
}

bool is_seen_by_python(const TensorImpl* impl) {
  return impl->python != nullptr && !impl->has(TensorImpl::kOwnsPython);
}

// By storage: whether the saved tensors, and what they are views of, are all that holds it.
std::vector<bool> hidden_storages(const Segment& segment, const StorageMap& ids,
                                  const std::vector<Tensor>& saved) {
  std::vector<uint32_t> holders(segment.storages.size());
  std::unordered_set<const TensorImpl*> met;
  for (Tensor tensor : saved) {
    while (tensor.defined() && met.insert(tensor.impl()).second) {
      int storage = ids.find(tensor.storage());
      if (storage >= 0 && !is_seen_by_python(tensor.impl())) {
        ++holders[static_cast<size_t>(storage)];
      }
      tensor = autograd::view_base(tensor);
    }
  }
  std::vector<bool> hidden(segment.storages.size());
  for (size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = holders[i] != 0 && !segment.graph.storages[i].input &&
                segment.storages[i]->references.load(std::memory_order_acquire) == 1 + holders[i];
  }
  return hidden;
}

void find_hidden(Session& session, double budget, const std::vector<Tensor>& saved) {
  Segment& segment = session.segment;
  segment.activation_memory_budget = budget;
  if (budget == kKeepAll) {
    return;
  }
  segment.hidden = hidden_storages(segment, session.ids, saved);
  for (size_t i = 0; i < segment.storages.size(); ++i) {
    bool input = segment.graph.storages[i].input;
    segment.lendable.push_back(!input || (budget < 1 && is_lendable(segment.storages[i])));
  }
}

// Runs the session's segment and leaves it empty. The session's mutex is held.
void run_segment(Session& session, Break reason, std::string_view what,
                 const std::vector<Tensor>& saved) {
  Segment& segment = session.segment;
  const Settings& settings = settings_of(session.settings);
  find_hidden(session, settings.activation_memory_budget, saved);
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
  if (reason != Break::Close && is_logged("breaks")) {
    log_break(segment);
  }
  if (settings.foreign) {
    unmark_written(session);
  }
  Running running(session);
  ThreadState before = thread_state;
  thread_state.doors = 0;
  thread_state.capture = 0;
  bool inference = std::exchange(making_inference_tensors, false);
  auto finish = [&] {
    thread_state = before;
    making_inference_tensors = inference;
    segment.clear();
    unmark_written(session);
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
      if (!has_memory(segment.storages[i]) && segment.is_live(static_cast<int>(i))) {
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
  std::vector<Tensor> saved = take_saved(session);  // dropped when the session is free
  std::unique_lock<std::mutex> lock = lock_session(session);
  run_segment(session, reason, what, saved);
}

// Of any thread: the storage may belong to another thread's capture.
void compute(StorageImpl* storage) {
  if ((segments_run != 0 || in_parallel()) && has_memory(storage)) {
    return;  // a kernel of the segment itself
  }
  while (storage->pending.load(std::memory_order_acquire)) {
    if (has_recipe(storage)) {
      make_again(storage);
      continue;
    }
    if (has_failed(storage)) {
      fail(ErrorKind::Runtime, "",
           "the tensor was never computed, since an operator before it failed: ",
           static_cast<Failure*>(storage->context)->text);
    }
    Session* session = session_of(storage);
    if (session == nullptr) {
      if (is_lent(storage)) {
        settle(storage);
      } else {
        wait_for_runners();
      }
      continue;
    }
    if (session->running && session->runner == std::this_thread::get_id()) {
      fail(ErrorKind::Internal, "compile", "an operator reads a result that comes after it");
    }
    std::vector<Tensor> saved = take_saved(*session);
    std::unique_lock<std::mutex> lock = lock_session(*session);
    if (storage->pending.load(std::memory_order_acquire) && session_of(storage) == session) {
      run_segment(*session, Break::Value, reading, saved);
    }
  }
}

// Of a tensor that is alone with its storage: what is lent is never alone, what has a recipe is in
// no graph.
uint32_t count_pending_holders(StorageImpl* storage) {
  if (has_recipe(storage)) {
    return 1;
  }
  return is_lent(storage) ? 0 : 2;
}

// What forward has captured runs first where there is a budget: it decides what backward finds.
bool begin_backward(uint32_t settings) {
  if (thread_state.capture != 0 && this_session().budget < 1 && !this_session().running) {
    flush(this_session(), Break::Close, "");
  }
  return open_capture(settings);
}

// Saved tensors are kept until the segment runs: then it is known who else holds their storages.
void note_saved(const Tensor& tensor) {
  Session& session = this_session();
  if (session.budget != kKeepAll && is_made_by(session, tensor.storage())) {
    session.saved.push_back(tensor);
  }
}

const bool installed = [] {
  compute_pending = compute;
  run_captured = flush_capture;
  autograd::pending_holders = count_pending_holders;
  autograd::note_saved = note_saved;
  autograd::open_capture = begin_backward;
  autograd::close_capture = close_capture;
  return true;
}();

}  // namespace

// A storage that is being made does not say by whom.
void wait_for_runners() {
  std::vector<Session*> running;
  {
    std::lock_guard<std::mutex> lock(runners().mutex);
    running = runners().sessions;
  }
  for (Session* session : running) {
    lock_session(*session);
  }
}

void prepare_session(Session& session) {
  static const uint32_t plain = [] {
    Settings settings;
    settings.runner = execute;
    settings.name = "recomputation";
    return register_settings(std::move(settings));
  }();
  std::unique_lock<std::mutex> lock = lock_session(session);
  session.settings = plain;
}

void run_session(Session& session) {
  flush(session, Break::Close, "");
}

void Segment::clear() {
  for (size_t i = 0; i < storages.size(); ++i) {
    if (!graph.storages[i].input) {
      publish(storages[i]);
    }
    release(storages[i]);
  }
  storages.clear();
  graph.clear();
  plan.reset();
  hidden.clear();
  lendable.clear();
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
  this_session().budget = chosen.activation_memory_budget;
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

namespace {

// Settings like these with another budget, registered once.
uint32_t settings_with(uint32_t number, double budget) {
  static std::mutex mutex;
  static std::map<std::pair<uint32_t, double>, uint32_t> known;
  Settings made = settings_of(number);
  if (made.activation_memory_budget == kKeepAll || made.activation_memory_budget == budget) {
    return number;
  }
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace({number, budget});
  if (fresh) {
    made.activation_memory_budget = budget;
    at->second = register_settings(std::move(made));
  }
  return at->second;
}

void go_on_under(uint32_t settings) {
  flush(this_session(), Break::Close, "");
  this_session().settings = settings;
  this_session().budget = settings_of(settings).activation_memory_budget;
  thread_state.capture = settings;
}

}  // namespace

uint32_t enter_budget(double activation_memory_budget) {
  const uint32_t before = thread_state.capture;
  if (before == 0 || this_session().running) {
    fail(ErrorKind::Runtime, "",
         "torch.autograd.graph.region_activation_memory_budget can only be used inside a "
         "torch.compile region; it has no effect in eager mode.");
  }
  go_on_under(settings_with(before, activation_memory_budget));
  return before;
}

void leave_budget(uint32_t before) {
  if (thread_state.capture != 0 && !this_session().running) {
    go_on_under(before);
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

void publish_written(StorageImpl* input) {
  if (!input->pending.load(std::memory_order_relaxed)) {
    return;
  }
  std::lock_guard<std::mutex> lock(writers().mutex);
  auto found = writers().sessions.find(input);
  // Another session may have written down a write that comes later.
  if (found != writers().sessions.end() && found->second->running &&
      found->second->runner == std::this_thread::get_id()) {
    std::erase(found->second->written, input);
    writers().sessions.erase(found);
    publish(input);
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

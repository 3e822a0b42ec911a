// Capture: the last door. While it is open on a thread, operators append to a graph instead of
// running, and their results are tensors whose storage is pending.
//
// A segment ends, and runs, when somebody needs a pending storage's memory (storage_data), when an
// operator's shapes depend on data, or when the capture closes. So any program means what it means
// without capture; only the time at which work is done moves. Gradients are recorded as always:
// autograd's door lies before this one. What fails while a segment runs is raised where the segment
// ended, and again by whoever reads a result that was never made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace rushlight::graph {

inline constexpr double kKeepAll = 2;

// Why a segment ended.
enum class Break : uint8_t { Close, Value, Operator };

// The memory that a segment's graph runs on: one storage each, referenced once by the segment.
struct Segment {
  Graph graph;
  std::vector<StorageImpl*> storages;
  Break reason = Break::Close;
  std::shared_ptr<void> plan;  // of the back end that looked at it first
  std::string what;            // Break::Operator: its name; Break::Value: what read (Reading)
  // How much of what is saved for backward is kept (Settings).
  double activation_memory_budget = kKeepAll;
  // But for kKeepAll, by storage: whether autograd's saved tensors are all that holds it, and
  // whether recipes may read it.
  std::vector<bool> hidden;
  std::vector<bool> lendable;

  // Whether anybody but the segment can see the storage.
  bool is_live(int storage) const {
    return storages[static_cast<size_t>(storage)]->references.load(std::memory_order_acquire) > 1;
  }
  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment() { clear(); }
  void clear();
};

// What runs a segment: fills the storages of all results that are live.
using Runner = std::function<void(Segment&)>;

struct Settings {
  Runner runner;
  bool fullgraph = false;  // a segment that ends before the capture closes is an error
  std::string name;
  // Where the program is, for Graph::lines; null: they are kept while a profile is on. Called for
  // each operator.
  std::function<std::string()> locate;
  // For reports: called before each segment runs.
  std::function<void(const Segment&)> observer;
  // The runner hands inputs to strangers, on whatever thread: they may read what will be written.
  bool foreign = false;
  // How much of what is saved for backward is kept: 1 all but what costs no time to compute again,
  // 0 what cannot be computed again cheaply. Below 1 a segment ends where backward begins, and
  // recipes read what the program sees too. kKeepAll: the runner knows of no recipes.
  double activation_memory_budget = kKeepAll;
};

// Keeps settings for ever; the number goes into Node::capture.
RUSHLIGHT_API uint32_t register_settings(Settings settings);
RUSHLIGHT_API const Settings& settings_of(uint32_t number);

// Opens capture on this thread; false where it is open already.
RUSHLIGHT_API bool open_capture(uint32_t settings);
// Runs what is pending and closes. `failing`: an error is on its way already, so none is thrown.
RUSHLIGHT_API void close_capture(bool failing);
RUSHLIGHT_API bool is_capturing();
// Runs what is pending on this thread, for those who touch what operators touch (generators, memory
// lent to others), and `what` names. Nothing where no capture is open.
RUSHLIGHT_API void flush_capture(std::string_view what);

// Within an open capture: what follows runs in segments of their own, under settings that differ in
// the budget alone, until `leave_budget` gets the number that `enter_budget` gave. Runners that
// know of no recipes go on as before. Error(Runtime) where no capture is open.
RUSHLIGHT_API uint32_t enter_budget(double activation_memory_budget);
RUSHLIGHT_API void leave_budget(uint32_t before);

// For as long as it lives, what reads memory on this thread is called `what` in reports.
class RUSHLIGHT_API Reading {
 public:
  explicit Reading(const char* what);
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  const char* before_;
};

// Suspends capture until it is resumed with the number given back; 0 where none is open. What is
// pending runs first, since what follows runs at once and may write what it reads.
RUSHLIGHT_API uint32_t suspend_capture(std::string_view what);
RUSHLIGHT_API void resume_capture(uint32_t suspended);

// How a thread waits while another runs a segment; null: `mutex.lock()`. Python lets its own lock
// go meanwhile, for the segment may need it.
RUSHLIGHT_API extern void (*wait_for_segment)(std::mutex& mutex);

// Suspends capture for a scope: what runs inside runs at once.
class RUSHLIGHT_API Suspend {
 public:
  Suspend();
  ~Suspend();
  Suspend(const Suspend&) = delete;
  Suspend& operator=(const Suspend&) = delete;

 private:
  uint32_t doors_;
  uint32_t capture_;
};

}  // namespace rushlight::graph

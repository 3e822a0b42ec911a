#include "runtime/parallel.h"

#include <pthread.h>
#include <rushlight/error.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace rushlight {
namespace {

thread_local bool inside_piece = false;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `ready()` or about `limit` has passed; returns what `ready()` said last.
template <typename Ready>
bool spin_until(Ready ready, std::chrono::microseconds limit) {
  using Clock = std::chrono::steady_clock;
  if (ready()) {
    return true;
  }
  if (limit.count() == 0) {
    return false;
  }
  const auto deadline = Clock::now() + limit;
  do {
    for (int i = 0; i < 16; ++i) {
      relax();
      if (ready()) {
        return true;
      }
    }
  } while (Clock::now() < deadline);
  return ready();
}

// One loop in flight. The fields are atomics because a late worker may read them while the next
// loop is written; what it read is used only if its claim (below) then succeeds, and a claim
// succeeds only while the loop it belongs to is open.
struct Loop {
  std::atomic<const RangeBody*> body{nullptr};
  std::atomic<int64_t> begin{0};
  std::atomic<int64_t> end{0};
  std::atomic<uint64_t> unit{0};
  std::atomic<uint64_t> units{0};
  std::atomic<uint32_t> pieces{0};
};

// The first unit of a piece: pieces differ by one unit at most.
uint64_t first_unit(uint64_t units, uint64_t pieces, uint64_t piece) {
  return units / pieces * piece + std::min(units % pieces, piece);
}

// What the pool knows of a thread of its own. Linux wakes a sleeper where it last ran, if it takes
// the other cores for busy; where that is the caller's core, the sleeper waits there for the
// caller, who computes, until the scheduler balances loads: milliseconds. So such a sleeper is kept
// off that core until it runs.
class Worker {
 public:
  void started() { thread_.store(pthread_self(), std::memory_order_release); }
  void falls_asleep() {
    core_.store(sched_getcpu(), std::memory_order_relaxed);
    asleep_.store(true);
  }
  void woke() {
    asleep_.store(false);
    if (moved_.exchange(false)) {
      pthread_setaffinity_np(pthread_self(), sizeof allowed_, &allowed_);
    }
  }
  // Called by one thread at a time.
  void keep_off(int core) {
    if (!asleep_.load() || core_.load(std::memory_order_relaxed) != core || moved_.load()) {
      return;
    }
    const pthread_t thread = thread_.load(std::memory_order_acquire);
    if (pthread_getaffinity_np(thread, sizeof allowed_, &allowed_) != 0) {
      return;  // More cores than the set holds: leave it to the scheduler.
    }
    cpu_set_t others = allowed_;
    CPU_CLR(core, &others);
    // A thread that wakes between these two gets its cores back when it wakes next.
    if (CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread, sizeof others, &others) == 0) {
      moved_.store(true);
    }
  }

 private:
  std::atomic<pthread_t> thread_{};
  std::atomic<int> core_{-1};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> moved_{false};
  cpu_set_t allowed_;
};

class Pool {
 public:
  // Returns false when another thread's loop occupies the pool.
  bool try_run(int64_t begin, int64_t end, uint64_t unit, uint64_t units, uint32_t pieces,
               const RangeBody& body, int threads);

  Pool* retired_next = nullptr;

 private:
  void ensure_workers(int wanted);
  void publish(int64_t begin, int64_t end, uint64_t unit, uint64_t units, uint32_t pieces,
               const RangeBody& body);
  void wake(uint32_t useful);
  void work(Worker* self);
  void run_pieces(uint64_t claim);
  void wait_until_done(uint32_t pieces);
  void keep_exception(uint32_t piece);

  // Long enough to outlast the serial part between two loops of a training step, since waking a
  // sleeper takes tens of microseconds on a virtual machine. It pays only if each thread can have a
  // core of its own.
  std::chrono::microseconds patience() const {
    const bool fits = started_.load(std::memory_order_relaxed) < available_cores();
    return std::chrono::microseconds(fits ? 200 : 0);
  }

  std::mutex occupied_;
  std::deque<Worker> workers_;  // guarded by occupied_
  std::atomic<int> started_{0};
  Loop loop_;
  // High half: number of the loop. Low half: pieces not yet claimed; none means closed, whatever
  // the fields of the loop say by then.
  alignas(64) std::atomic<uint64_t> claim_{0};
  alignas(64) std::atomic<uint32_t> finished_{0};
  std::atomic<bool> caller_sleeps_{false};
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::mutex exception_mutex_;
  std::exception_ptr exception_;
  uint32_t exception_piece_ = 0;
};

void Pool::keep_exception(uint32_t piece) {
  const std::lock_guard lock(exception_mutex_);
  if (!exception_ || piece < exception_piece_) {
    exception_ = std::current_exception();
    exception_piece_ = piece;
  }
}

// Claims and runs pieces of the loop that `claim` belongs to until none is left.
void Pool::run_pieces(uint64_t claim) {
  const uint64_t number = claim >> 32;
  while (claim >> 32 == number) {
    const RangeBody* body = loop_.body.load(std::memory_order_relaxed);
    const int64_t begin = loop_.begin.load(std::memory_order_relaxed);
    const int64_t end = loop_.end.load(std::memory_order_relaxed);
    const uint64_t unit = loop_.unit.load(std::memory_order_relaxed);
    const uint64_t units = loop_.units.load(std::memory_order_relaxed);
    const uint32_t pieces = loop_.pieces.load(std::memory_order_relaxed);
    const auto unclaimed = static_cast<uint32_t>(claim);
    if (unclaimed == 0) {
      return;
    }
    if (!claim_.compare_exchange_weak(claim, claim - 1, std::memory_order_acq_rel)) {
      continue;
    }
    const uint32_t piece = pieces - unclaimed;
    // Without a sign, since a range may be longer than signed numbers go.
    const auto start_of = [&](uint32_t of) {
      const uint64_t skipped = first_unit(units, pieces, of) * unit;
      return static_cast<int64_t>(static_cast<uint64_t>(begin) + skipped);
    };
    const int64_t first = start_of(piece);
    const int64_t last = piece + 1 == pieces ? end : start_of(piece + 1);
    try {
      (*body)(first, last);
    } catch (...) {
      keep_exception(piece);
    }
    const uint32_t done = finished_.fetch_add(1) + 1;
    if (done == pieces && caller_sleeps_.load()) {
      finished_.notify_one();
    }
    claim = claim_.load(std::memory_order_acquire);
  }
}

void Pool::work(Worker* self) {
  self->started();
  inside_piece = true;
  uint32_t seen = 0;
  for (;;) {
    const auto changed = [&] { return generation_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(changed, patience())) {
      self->falls_asleep();
      sleepers_.fetch_add(1);
      generation_.wait(seen);
      sleepers_.fetch_sub(1);
      self->woke();
    }
    seen = generation_.load(std::memory_order_acquire);
    run_pieces(claim_.load(std::memory_order_acquire));
  }
}

void Pool::ensure_workers(int wanted) {
  while (started_.load(std::memory_order_relaxed) < wanted) {
    // Workers take no signals, so that handlers run on threads the program knows.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
      Worker* worker = &workers_.emplace_back();
      std::thread([this, worker] { work(worker); }).detach();
    } catch (const std::system_error&) {
      started = false;  // The system's limit of threads: those that run can finish any loop.
      workers_.pop_back();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) {
      return;
    }
    started_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Pool::publish(int64_t begin, int64_t end, uint64_t unit, uint64_t units, uint32_t pieces,
                   const RangeBody& body) {
  loop_.body.store(&body, std::memory_order_relaxed);
  loop_.begin.store(begin, std::memory_order_relaxed);
  loop_.end.store(end, std::memory_order_relaxed);
  loop_.unit.store(unit, std::memory_order_relaxed);
  loop_.units.store(units, std::memory_order_relaxed);
  loop_.pieces.store(pieces, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  const uint64_t number = (claim_.load(std::memory_order_relaxed) >> 32) + 1;
  claim_.store(number << 32 | pieces, std::memory_order_release);
}

void Pool::wake(uint32_t useful) {
  generation_.fetch_add(1);
  const uint32_t sleeping = sleepers_.load();
  if (sleeping == 0) {
    return;
  }
  const int here = sched_getcpu();
  for (Worker& worker : workers_) {
    worker.keep_off(here);
  }
  if (useful >= sleeping) {
    generation_.notify_all();
    return;
  }
  for (uint32_t i = 0; i < useful; ++i) {
    generation_.notify_one();
  }
}

void Pool::wait_until_done(uint32_t pieces) {
  const auto done = [&] { return finished_.load(std::memory_order_acquire) == pieces; };
  if (spin_until(done, patience())) {
    return;
  }
  caller_sleeps_.store(true);
  for (uint32_t now = finished_.load(); now != pieces; now = finished_.load()) {
    finished_.wait(now);
  }
  caller_sleeps_.store(false);
}

bool Pool::try_run(int64_t begin, int64_t end, uint64_t unit, uint64_t units, uint32_t pieces,
                   const RangeBody& body, int threads) {
  const std::unique_lock lock(occupied_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  ensure_workers(threads - 1);
  publish(begin, end, unit, units, pieces, body);
  wake(std::min<uint32_t>(pieces, static_cast<uint32_t>(threads)) - 1);
  inside_piece = true;
  run_pieces(claim_.load(std::memory_order_relaxed));
  inside_piece = false;
  wait_until_done(pieces);
  if (exception_) {
    const std::exception_ptr thrown = std::exchange(exception_, nullptr);
    std::rethrow_exception(thrown);
  }
  return true;
}

std::atomic<Pool*> current_pool{nullptr};
Pool* retired_pools = nullptr;

// Only the forking thread lives on in the child: the pool, with locks in whatever state, is set
// aside and the next loop starts a new one.
void retire_pool_in_child() {
  Pool* pool = current_pool.exchange(nullptr);
  if (pool != nullptr) {
    pool->retired_next = std::exchange(retired_pools, pool);
  }
}

// The pool is never destroyed: its workers may outlive every static object.
Pool& pool() {
  Pool* found = current_pool.load(std::memory_order_acquire);
  if (found != nullptr) {
    return *found;
  }
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, retire_pool_in_child);
  Pool* fresh = new Pool;
  if (!current_pool.compare_exchange_strong(found, fresh)) {
    delete fresh;
    return *found;
  }
  return *fresh;
}

std::optional<int> count_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    return std::nullopt;
  }
  char* rest = nullptr;
  errno = 0;
  const long value = std::strtol(text, &rest, 10);
  // OpenMP allows a list, one number for each level of nesting.
  const bool ends = rest != text && (*rest == '\0' || *rest == ',' || *rest == ' ');
  if (!ends || errno != 0 || value < 1 || value > INT_MAX) {
    warn(cat(variable, " must be a positive number of threads, got '", text, "': ignored"));
    return std::nullopt;
  }
  return static_cast<int>(value);
}

std::atomic<int>& thread_setting() {
  static std::atomic<int> setting = [] {
    if (const auto count = count_from("RUSHLIGHT_NUM_THREADS")) {
      return *count;
    }
    return count_from("OMP_NUM_THREADS").value_or(available_cores());
  }();
  return setting;
}

}  // namespace

int num_threads() {
  return thread_setting().load(std::memory_order_relaxed);
}

void set_num_threads(int count) {
  if (count < 1) {
    fail(ErrorKind::Runtime, "set_num_threads", "expected a positive number of threads, got ",
         count);
  }
  thread_setting().store(count, std::memory_order_relaxed);
}

bool in_parallel() {
  return inside_piece;
}

void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body) {
  if (begin >= end) {
    return;
  }
  const uint64_t items = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  const uint64_t unit = static_cast<uint64_t>(std::max<int64_t>(grain, 1));
  const int threads = num_threads();
  if (items <= unit || threads == 1 || inside_piece) {
    body(begin, end);
    return;
  }
  // A few pieces for each thread even out cores of unequal speed or load.
  const uint64_t units = (items - 1) / unit + 1;
  const uint64_t pieces = std::min<uint64_t>(units, static_cast<uint64_t>(threads) * 4);
  const int useful = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(threads), pieces));
  if (!pool().try_run(begin, end, unit, units, static_cast<uint32_t>(pieces), body, useful)) {
    body(begin, end);
  }
}

}  // namespace rushlight

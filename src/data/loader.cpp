#include <rushlight/data.h>
#include <rushlight/generated/functions.h>

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace rushlight::data::detail {

std::shared_ptr<BatchSampler> batch_sampler(const DataLoaderOptions& options, int64_t size) {
  if (options.num_workers() < 0) {
    fail(ErrorKind::Value, "",
         "num_workers option should be non-negative; use num_workers=0 to disable "
         "multiprocessing.");
  }
  if (options.num_workers() == 0 && options.prefetch_factor()) {
    fail(ErrorKind::Value, "",
         "prefetch_factor option could only be specified in multiprocessing."
         "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None.");
  }
  if (options.prefetch_factor().value_or(1) < 1) {
    fail(ErrorKind::Value, "", "prefetch_factor option should be positive, got ",
         *options.prefetch_factor());
  }
  std::shared_ptr<Sampler> sampler = options.sampler();
  if (sampler != nullptr && options.shuffle()) {
    fail(ErrorKind::Value, "", "sampler option is mutually exclusive with shuffle");
  }
  if (sampler == nullptr && options.shuffle()) {
    sampler = std::make_shared<RandomSampler>(size, false, std::nullopt, options.generator());
  } else if (sampler == nullptr) {
    sampler = std::make_shared<SequentialSampler>(size);
  }
  return std::make_shared<BatchSampler>(sampler, options.batch_size(), options.drop_last());
}

void begin_epoch(const DataLoaderOptions& options) {
  random_(empty({}, TensorOptions(DType::Int64)), options.generator());
}

// A batch, or why there is none.
struct Loaded {
  std::shared_ptr<void> batch;
  std::exception_ptr error;
};

struct Prefetcher::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  size_t begun = 0;
  size_t limit = 0;  // numbers from here on may not begin yet
  bool closed = false;
  std::map<size_t, Loaded> loaded;
  std::vector<std::thread> threads;

  void work(size_t count, const Load& load) {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return closed || begun == count || begun < limit; });
      if (closed || begun == count) {
        return;
      }
      const size_t number = begun++;
      lock.unlock();
      Loaded made;
      try {
        made.batch = load(number);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      loaded.emplace(number, std::move(made));
      changed.notify_all();
    }
  }
};

Prefetcher::Prefetcher(size_t count, int64_t workers, int64_t ahead, Load load)
    : count_(count), load_(std::move(load)) {
  if (workers == 0) {
    return;
  }
  queue_ = std::make_unique<Queue>();
  queue_->limit = static_cast<size_t>(workers * ahead);
  for (int64_t worker = 0; worker < workers; ++worker) {
    queue_->threads.emplace_back([this] { queue_->work(count_, load_); });
  }
}

Prefetcher::~Prefetcher() {
  if (queue_ == nullptr) {
    return;
  }
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->closed = true;
  }
  queue_->changed.notify_all();
  for (std::thread& thread : queue_->threads) {
    thread.join();
  }
}

std::shared_ptr<void> Prefetcher::next() {
  if (given_ == count_) {
    return nullptr;
  }
  const size_t number = given_++;
  if (queue_ == nullptr) {
    return load_(number);
  }
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait(lock, [&] { return queue_->loaded.contains(number); });
  Loaded made = std::move(queue_->loaded.extract(number).mapped());
  ++queue_->limit;
  queue_->changed.notify_all();
  if (made.error) {
    std::rethrow_exception(made.error);
  }
  return made.batch;
}

}  // namespace rushlight::data::detail

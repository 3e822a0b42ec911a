// The library driven from many threads at once: results are those of one thread, and the thread
// sanitizer sees each place that threads share.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/kernel_cache.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

constexpr int kThreads = 6;

// Runs `body(thread)` on all threads, which start together. An exception in one fails the test.
void on_threads(const std::function<void(int)>& body) {
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::vector<std::string> errors;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      try {
        body(t);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        errors.emplace_back(error.what());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(errors, std::vector<std::string>{});
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() && equal(a, b);
}

// Something of every kind of body: element-wise, reduction, scan, indexing, sort, products, views.
TensorList every_kind(const Tensor& x) {
  Tensor rows = softmax(x, -1);
  Tensor order = argsort(x, int64_t{-1});
  return {sum(gelu(x) * 2 + exp(-x)),
          layer_norm(x, {x.size(-1)}),
          cumsum(rows, 1),
          gather(x, 1, order),
          matmul(x, x.transpose(0, 1)),
          cat({x.narrow(1, 0, 3), x.slice(1, 3, 5)}, 1),
          x.to(DType::BFloat16),
          argmax(x, 1)};
}

TEST(ManyThreads, OperatorsGiveTheResultsOfOneThread) {
  manual_seed(1);
  Tensor x = randn({40, 24});
  TensorList expected = every_kind(x);
  on_threads([&](int) {
    for (int round = 0; round < 8; ++round) {
      TensorList got = every_kind(x);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(same_bits(got[i], expected[i])) << "result " << i;
      }
    }
  });
}

TEST(ManyThreads, LargeLoopsShareThePool) {
  Tensor x = arange(0, 300000, TensorOptions(DType::Float32));
  Tensor expected = sum(sqrt(x));
  on_threads([&](int t) {
    for (int round = 0; round < 4; ++round) {
      if (t == 0) {
        set_num_threads(1 + round);
      }
      EXPECT_TRUE(same_bits(sum(sqrt(x)), expected));
    }
  });
  set_num_threads(2);
}

// Threads meet kernels that nobody has asked for, each in another order.
TEST(ManyThreads, KernelsAreMadeWhileOthersRun) {
  const std::vector<DType> dtypes = {DType::Float32, DType::Float64, DType::Float16, DType::Int32,
                                     DType::Int16};
  on_threads([&](int t) {
    for (size_t i = 0; i < dtypes.size(); ++i) {
      DType dtype = dtypes[(i + static_cast<size_t>(t)) % dtypes.size()];
      Tensor x = arange(1, 9, TensorOptions(dtype)).reshape({2, 4});
      Tensor y = addcmul(x, x.t().contiguous().t(), x);
      EXPECT_EQ(y.sum().item<double>(), 36 + 204);
      EXPECT_EQ(amax(y, {0}).size(0), 4);
    }
  });
}

TEST(ManyThreads, EachThreadHasItsOwnGraphOverSharedWeights) {
  manual_seed(2);
  nn::Sequential model{nn::Linear(8, 16), nn::Tanh(), nn::Linear(16, 1)};
  Tensor x = randn({5, 8});
  auto gradients = [&] {
    Tensor loss = model->forward(x).square().mean();
    return autograd::grad({loss}, model->parameters());
  };
  TensorList expected = gradients();
  on_threads([&](int) {
    for (int round = 0; round < 10; ++round) {
      TensorList got = gradients();
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(same_bits(got[i], expected[i])) << "parameter " << i;
      }
    }
  });
}

TEST(ManyThreads, GradientsOfOneLeafAddUp) {
  Tensor leaf = ones({64}).requires_grad_();
  std::atomic<int> hooked{0};
  autograd::HookHandle handle = autograd::register_hook(leaf, [&](const Tensor&) {
    ++hooked;
    return Tensor();
  });
  on_threads([&](int) {
    for (int round = 0; round < 20; ++round) {
      (leaf * 2).sum().backward();
    }
  });
  EXPECT_TRUE(same_bits(leaf.grad(), full({64}, 2.0 * 20 * kThreads)));
  EXPECT_EQ(hooked, 20 * kThreads);
}

TEST(ManyThreads, OneGraphIsWalkedByAll) {
  Tensor leaf = ones({16}).requires_grad_();
  Tensor y = (exp(leaf) * leaf).sum();
  Tensor expected = autograd::grad({y}, {leaf}, {}, true)[0];
  on_threads([&](int) {
    for (int round = 0; round < 20; ++round) {
      EXPECT_TRUE(same_bits(autograd::grad({y}, {leaf}, {}, true)[0], expected));
    }
  });
}

TEST(ManyThreads, GradModeBelongsToTheThread) {
  Tensor leaf = ones({4}).requires_grad_();
  on_threads([&](int t) {
    for (int round = 0; round < 50; ++round) {
      if (t % 2 == 0) {
        NoGradGuard no_grad;
        EXPECT_FALSE((leaf * 2).requires_grad());
      } else {
        EXPECT_TRUE((leaf * 2).requires_grad());
      }
    }
  });
}

TEST(ManyThreads, TensorsDieOnOtherThreads) {
  memory::empty_cache();
  const int64_t before = memory::statistics().live_bytes;
  std::mutex mutex;
  std::deque<Tensor> queue;
  on_threads([&](int t) {
    for (int i = 0; i < 200; ++i) {
      Tensor made = full({1 + (i * 37 + t) % 5000}, i);
      Tensor taken;
      {
        const std::lock_guard lock(mutex);
        queue.push_back(made.slice(0, 0, 1));
        if (queue.size() > 8) {
          taken = queue.front();
          queue.pop_front();
        }
      }
      if (taken.defined()) {
        EXPECT_GE(taken.item<int64_t>(), 0);
      }
      if (i % 50 == 0) {
        memory::empty_cache();
        EXPECT_GE(memory::statistics().peak_bytes, 0);
      }
    }
  });
  queue.clear();
  EXPECT_EQ(memory::statistics().live_bytes, before);
}

TEST(ManyThreads, LimitsHoldForAllTogether) {
  memory::empty_cache();
  const int64_t block = int64_t{1} << 20;
  const int64_t before = memory::statistics().live_bytes;
  memory::set_limit(before + 3 * block + block / 2);
  std::latch tried(kThreads);
  std::atomic<int> held{0};
  std::atomic<int> refused{0};
  on_threads([&](int) {
    Tensor mine;
    try {
      mine = make_tensor({block - 128}, DType::UInt8);
      ++held;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
      ++refused;
    }
    tried.arrive_and_wait();  // nobody gives a block back before all have tried
  });
  memory::set_limit(0);
  EXPECT_EQ(held, 3);
  EXPECT_EQ(refused, kThreads - 3);
  EXPECT_EQ(memory::statistics().live_bytes, before);
}

TEST(ManyThreads, TheDefaultGeneratorGivesEachNumberOnce) {
  manual_seed(7);
  Tensor expected = std::get<0>(sort(rand({kThreads * 100}, TensorOptions(DType::Float64))));
  manual_seed(7);
  std::vector<Tensor> drawn(kThreads * 100);
  on_threads([&](int t) {
    for (int i = 0; i < 100; ++i) {
      drawn[static_cast<size_t>(t * 100 + i)] = rand({1}, TensorOptions(DType::Float64));
    }
  });
  EXPECT_TRUE(same_bits(std::get<0>(sort(cat(drawn))), expected));
}

TEST(ManyThreads, GeneratorsOfTheirOwnRepeat) {
  auto stream = [] {
    Generator generator(5);
    Tensor values = empty({100});
    normal_(values, 0, 1, generator);
    return values;
  };
  Tensor expected = stream();
  on_threads([&](int) { EXPECT_TRUE(same_bits(stream(), expected)); });
}

TEST(ManyThreads, ErrorsPrintingAndSettings) {
  Tensor x = arange(0, 12).reshape({3, 4});
  const std::string expected = x.to_string();
  on_threads([&](int t) {
    for (int round = 0; round < 20; ++round) {
      if (t == 0) {
        PrintOptions options = print_options();
        set_print_options(options);
      }
      EXPECT_EQ(x.to_string(), expected);
      EXPECT_THROW(matmul(x, x), Error);
      EXPECT_GE(kernel_cache_stats().compiled, 0);
    }
  });
}

TEST(ManyThreads, EachTrainsAModelOfItsOwn) {
  auto train = [](int) {
    Tensor x = linspace(-1, 1, 32).unsqueeze(1);
    Tensor y = x * x;
    nn::Linear first(1, 8);
    nn::Linear second(8, 1);
    for (Tensor& parameter : first->parameters()) {
      nn::init::constant_(parameter, 0.3);
    }
    for (Tensor& parameter : second->parameters()) {
      nn::init::constant_(parameter, -0.2);
    }
    std::vector<Tensor> parameters = first->parameters();
    for (const Tensor& parameter : second->parameters()) {
      parameters.push_back(parameter);
    }
    optim::AdamW optimizer(parameters, optim::AdamWOptions(1e-2));
    double last = 0;
    for (int step = 0; step < 10; ++step) {
      Tensor loss = mse_loss(second(tanh(first(x))), y);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      last = loss.item<double>();
    }
    return last;
  };
  const double expected = train(0);
  on_threads([&](int t) { EXPECT_EQ(train(t), expected); });
}

TEST(ManyThreads, ReadOneFileAndWriteItsFellows) {
  const std::string path = ::testing::TempDir() + "many-threads-" + std::to_string(getpid());
  safetensors::save_file({{"w", arange(0, 1000)}}, path);
  on_threads([&](int t) {
    for (int round = 0; round < 5; ++round) {
      EXPECT_TRUE(same_bits(safetensors::load_file(path).at("w"), arange(0, 1000)));
      safetensors::save_file({{"w", full({t + 1}, t)}}, path + "-" + std::to_string(t));
    }
  });
  for (int t = 0; t < kThreads; ++t) {
    unlink((path + "-" + std::to_string(t)).c_str());
  }
  unlink(path.c_str());
}

}  // namespace
}  // namespace rushlight

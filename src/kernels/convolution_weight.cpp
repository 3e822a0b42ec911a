// The gradient of the weight: for each group the product of windows (channels and taps by
// positions) with the gradient of the output (positions by channels), image by image.
//
// Windows are read where they lie, row after row of positions.
#include <algorithm>

#include "kernels/convolution_engine.h"
#include "kernels/convolution_windows.h"
#include "kernels/gemm_product.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight::convolutions {
namespace {

constexpr int64_t kTaskWork = 1 << 18;

const PerThread<Scratch> planes_scratch;
const PerThread<Scratch> grad_scratch;
const PerThread<Scratch> sums_scratch;
const PerThread<Scratch> turned_scratch;
const PerThread<Scratch> row_scratch;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

template <typename T>
struct Job {
  const Convolution& problem;
  const Windows& windows;
  const GemmEngine<T>& engine;
  const ConvolutionEngine<T>& tools;
  const std::vector<int64_t>& rows;
  int64_t panels;  // of output channels of a group
  T* sums;         // [group][panel][row][column]

  int64_t depth() const { return static_cast<int64_t>(rows.size()); }
  int64_t cols() const { return engine.cols; }
  int64_t positions() const { return count(problem.output); }
};

// The gradients of one panel of channels of an image, [position][channel].
template <typename T>
void lay_out(const Job<T>& job, const ImagesRef& output, int64_t image, int64_t group,
             int64_t panel, T* out) {
  const Convolution& p = job.problem;
  const int64_t cols = job.cols();
  const int64_t first = group * p.out_channels + panel * cols;
  const int64_t channels = std::min(cols, p.out_channels - panel * cols);
  const Extent& size = p.output;
  const auto* data = static_cast<const char*>(output.data);
  const int64_t at = image * output.strides[0] + first * output.strides[1];
  // Rows that are neighbours in memory are taken as one.
  const bool joined = output.strides[3] == size[2] * output.strides[4] || size[1] == 1;
  const int64_t rows = joined ? size[1] : 1;
  for (int64_t z = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; y += rows) {
      const int64_t from = at + z * output.strides[2] + y * output.strides[3];
      job.engine.pack(p.dtype, data + from * element_size(p.dtype), output.strides[1],
                      output.strides[4], channels, rows * size[2], cols,
                      out + (z * size[1] + y) * size[2] * cols);
    }
  }
}

// Positions that are multiplied at a time: some rows of the output, or a part of a row.
struct Stretch {
  int64_t left;   // where the windows start
  int64_t right;  // the first of the positions
  int64_t rows;
  int64_t length;
};

std::vector<Stretch> stretches(const Convolution& p, const Windows& windows) {
  std::vector<Stretch> made;
  const Extent& size = p.output;
  const int64_t together = std::max<int64_t>(1, kGemmDepth / size[2]);
  for (int64_t z = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; y += together) {
      for (int64_t x = 0; x < size[2]; x += kGemmDepth) {
        made.push_back({windows.at({z, y, x}), (z * size[1] + y) * size[2] + x,
                        std::min(together, size[1] - y), std::min(kGemmDepth, size[2] - x)});
      }
    }
  }
  return made;
}

template <typename T>
void add_images(const Job<T>& job, const Planes<T>& planes, const T* grads, int64_t first_image,
                int64_t images) {
  const Convolution& p = job.problem;
  const int64_t cols = job.cols();
  const std::vector<Stretch> parts = stretches(p, job.windows);
  const int64_t positions = job.positions();
  const int64_t work = positions * images * cols;
  int64_t rows = 48;
  while (rows > 6 && p.groups * job.panels * ceil_div(job.depth(), rows) < 4 * num_threads() &&
         work * (rows / 2) >= kTaskWork) {
    rows /= 2;
  }
  const int64_t down = ceil_div(job.depth(), rows);
  const int64_t grain = std::max<int64_t>(1, kTaskWork / (work * rows));
  parallel_for(0, p.groups * job.panels * down, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % down * rows;
      const int64_t panel = i / down;  // of all groups
      const int64_t count = std::min(rows, job.depth() - row);
      const int64_t wide = std::min(cols, p.out_channels - panel % job.panels * cols);
      T* sums = job.sums + (panel * job.depth() + row) * cols;
      for (int64_t n = 0; n < images; ++n) {
        const T* left =
            planes.data + n * planes.image + panel / job.panels * p.in_channels * planes.channel;
        const T* right = grads + (n * p.groups * job.panels + panel) * positions * cols;
        for (const Stretch& part : parts) {
          job.tools.strip(count, wide, part.rows, part.length, left + part.left,
                          job.windows.size[2], job.rows.data() + row, right + part.right * cols,
                          sums, first_image + n == 0 && part.right == 0);
        }
      }
    }
  });
}

// One output channel's sums, (channels, taps), to where the weight has them.
template <typename T>
void store_channel(const Job<T>& job, const MutableImagesRef& weight, int64_t channel,
                   const T* sums) {
  const Convolution& p = job.problem;
  const int64_t taps = count(p.kernel);
  const auto& strides = weight.strides;
  const int64_t item = element_size(p.dtype);
  char* out = static_cast<char*>(weight.data) + channel * strides[0] * item;
  const bool rows = (strides[4] == 1 || p.kernel[2] == 1) &&
                    (strides[3] == p.kernel[2] || p.kernel[1] == 1) &&
                    (strides[2] == p.kernel[1] * p.kernel[2] || p.kernel[0] == 1);
  if (rows && (strides[1] == taps || p.in_channels == 1)) {
    job.engine.store_row(p.dtype, sums, job.depth(), out, 1);
    return;
  }
  T* row = row_scratch->get<T>(p.in_channels);
  for (int64_t t = 0; t < taps; ++t) {
    job.engine.load_row(kComputeDType<T>, sums + t, taps, p.in_channels, row);
    const int64_t to = t / (p.kernel[1] * p.kernel[2]) * strides[2] +
                       t / p.kernel[2] % p.kernel[1] * strides[3] + t % p.kernel[2] * strides[4];
    job.engine.store_row(p.dtype, row, p.in_channels, out + to * item, strides[1]);
  }
}

template <typename T>
void store(const Job<T>& job, const MutableImagesRef& weight) {
  const Convolution& p = job.problem;
  const int64_t cols = job.cols();
  parallel_for(0, p.groups * job.panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel % job.panels * cols;
      const int64_t channels = std::min(cols, p.out_channels - first);
      T* turned = turned_scratch->get<T>(channels * job.depth());
      job.engine.pack(kComputeDType<T>, job.sums + panel * job.depth() * cols, cols, 1, job.depth(),
                      channels, job.depth(), turned);
      for (int64_t c = 0; c < channels; ++c) {
        store_channel(job, weight, panel / job.panels * p.out_channels + first + c,
                      turned + c * job.depth());
      }
    }
  });
}

}  // namespace

template <typename T>
void multiply_for_weight(const Convolution& problem, const Windows& windows, const ImagesRef& input,
                         const ImagesRef& output, const MutableImagesRef& weight) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const int64_t cols = engine.cols;
  const int64_t positions = count(problem.output);
  const int64_t panels = ceil_div(problem.out_channels, cols);
  const int64_t channels = problem.groups * problem.in_channels;
  const int64_t grads_size = problem.groups * panels * cols * positions;
  const int64_t together =
      images_together(problem.batch, channels * windows.channel() + grads_size);
  const int64_t depth = problem.in_channels * count(problem.kernel);
  T* sums = sums_scratch->get<T>(problem.groups * panels * depth * cols);
  T* grads = grad_scratch->get<T>(together * grads_size);
  for (int64_t image = 0; image < problem.batch; image += together) {
    const int64_t images = std::min(together, problem.batch - image);
    const Planes<T> planes =
        prepare<T>(windows, problem.dtype, input, image, images, channels, *planes_scratch);
    const std::vector<int64_t> rows =
        window_rows(windows.grids[0], problem.in_channels, planes.channel);
    const Job<T> job{problem, windows, engine, convolution_engine<T>(), rows, panels, sums};
    const int64_t each = problem.groups * panels;
    const int64_t grain = std::max<int64_t>(1, (1 << 13) / (positions * cols));
    parallel_for(0, images * each, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t panel = i % each;
        lay_out(job, output, image + i / each, panel / panels, panel % panels,
                grads + i * positions * cols);
      }
    });
    add_images(job, planes, grads, image, images);
    if (image + images == problem.batch) {
      store(job, weight);
    }
  }
}

#define RUSHLIGHT_INSTANTIATE(T)                                                             \
  template void multiply_for_weight<T>(const Convolution&, const Windows&, const ImagesRef&, \
                                       const ImagesRef&, const MutableImagesRef&);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::convolutions

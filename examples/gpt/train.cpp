// Trains a small GPT on the King James Bible, character by character: the C++ twin of train.py,
// with the same losses to the last digit. `--help` lists its settings.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "model.h"
#include "text.h"

namespace {

using rushlight::Tensor;

constexpr int64_t kValidationWindows = 256;  // while training
constexpr int64_t kFinalWindows = 4096;
constexpr int64_t kValidationBatch = 64;

// Settings by name, with train.py's defaults; an empty value is a switch that is off.
class Options {
 public:
  Options(int count, char** words) {
    for (int i = 1; i < count; ++i) {
      std::string name = words[i];
      if (name == "--help") {
        help();
      }
      auto found = values_.find(name);
      if (found == values_.end()) {
        std::fprintf(stderr, "unknown setting %s; --help lists them\n", words[i]);
        std::exit(2);
      }
      if (name == "--print-losses" || name == "--resume") {
        found->second = "1";
      } else if (i + 1 < count) {
        found->second = words[++i];
      } else {
        std::fprintf(stderr, "%s needs a value\n", words[i]);
        std::exit(2);
      }
    }
  }
  const std::string& text(const std::string& name) const { return values_.at(name); }
  bool on(const std::string& name) const { return !values_.at(name).empty(); }
  int64_t integer(const std::string& name) const { return std::atoll(text(name).c_str()); }
  double real(const std::string& name) const { return std::atof(text(name).c_str()); }

 private:
  [[noreturn]] void help() const {
    std::puts("Trains a GPT on text, character by character. Settings and their defaults:");
    for (const auto& [name, value] : values_) {
      std::printf("  %-18s %s\n", name.c_str(), value.c_str());
    }
    std::exit(0);
  }
  std::map<std::string, std::string> values_ = {
      {"--layers", "4"},      {"--width", "128"},  {"--heads", "4"},
      {"--context", "64"},    {"--batch", "12"},   {"--steps", "2000"},
      {"--lr", "2e-3"},       {"--warmup", "100"}, {"--weight-decay", "0.1"},
      {"--seed", "1337"},     {"--text", ""},      {"--out", "out/gpt-cpp"},
      {"--resume", ""},       {"--stop", ""},      {"--evaluate-every", "500"},
      {"--print-losses", ""}, {"--sample", "400"}, {"--temperature", "0.8"},
  };
};

// Rises in a line over the warm-up, then falls along a cosine to a tenth.
double learning_rate(int64_t step, const Options& options) {
  double lr = options.real("--lr");
  int64_t warmup = options.integer("--warmup");
  if (step < warmup) {
    return lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  int64_t rest = std::max<int64_t>(1, options.integer("--steps") - warmup);
  double part = static_cast<double>(step - warmup) / static_cast<double>(rest);
  return lr * (0.1 + 0.9 * 0.5 * (1 + std::cos(M_PI * part)));
}

// Matrices decay towards zero; gains and offsets of normalisations do not.
rushlight::optim::AdamW optimizer_of(const gpt::GPT& model, const Options& options) {
  rushlight::optim::AdamWOptions settings(options.real("--lr"));
  settings.betas({0.9, 0.99});
  std::vector<rushlight::optim::Group<rushlight::optim::AdamWOptions>> groups = {{{}, settings},
                                                                                 {{}, settings}};
  groups[0].options.weight_decay(options.real("--weight-decay"));
  groups[1].options.weight_decay(0);
  for (const Tensor& parameter : model->parameters()) {
    groups[parameter.dim() > 1 ? 0 : 1].params.push_back(parameter);
  }
  return rushlight::optim::AdamW(std::move(groups));
}

// Mean loss over windows spread evenly over the held-out text: the same ones every time.
double validation_loss(const gpt::GPT& model, const Tensor& held_out, int64_t windows) {
  rushlight::NoGradGuard no_grad;
  int64_t context = model->shape().context;
  int64_t last = held_out.size(0) - context - 1;
  double total = 0;
  for (int64_t first = 0; first < windows; first += kValidationBatch) {
    Tensor places = rushlight::empty({kValidationBatch}, rushlight::DType::Int64);
    for (int64_t i = 0; i < kValidationBatch; ++i) {
      places.data_ptr<int64_t>()[i] = (first + i) * last / windows;
    }
    gpt::Batch taken = gpt::batch(held_out, places, context);
    total += model->loss(taken.x, taken.y).item<double>();
  }
  return total / static_cast<double>(windows / kValidationBatch);
}

// Model, optimizer, random state and step in one safetensors file.
void save(const std::string& path, const gpt::GPT& model, const rushlight::optim::AdamW& optimizer,
          int64_t step) {
  rushlight::safetensors::NamedTensors all;
  for (const auto& [name, tensor] : model->state_dict()) {
    all[rushlight::cat("model.", name)] = tensor;
  }
  for (const auto& [name, tensor] : optimizer.state_dict()) {
    all[rushlight::cat("optimizer.", name)] = tensor;
  }
  std::vector<uint8_t> random = rushlight::default_generator().get_state();
  Tensor bytes = rushlight::empty({static_cast<int64_t>(random.size())}, rushlight::DType::UInt8);
  std::copy(random.begin(), random.end(), bytes.data_ptr<uint8_t>());
  all["random"] = bytes;
  rushlight::safetensors::save_file(all, path, {{"step", std::to_string(step)}});
}

int64_t load(const std::string& path, gpt::GPT& model, rushlight::optim::AdamW& optimizer) {
  rushlight::safetensors::File file(path);
  rushlight::nn::NamedTensors parameters;
  rushlight::nn::NamedTensors states;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.rfind("model.", 0) == 0) {
      parameters.emplace_back(name.substr(6), tensor);
    } else if (name.rfind("optimizer.", 0) == 0) {
      states.emplace_back(name.substr(10), tensor);
    } else {
      const auto* bytes = tensor.data_ptr<uint8_t>();
      rushlight::default_generator().set_state({bytes, bytes + tensor.numel()});
    }
  }
  model->load_state_dict(parameters);
  optimizer.load_state_dict(states);
  return std::atoll(file.metadata().at("step").c_str());
}

void show(int64_t done, int64_t first, int64_t last, double loss, double seconds,
          int64_t tokens_a_step) {
  double rate = static_cast<double>(done - first) / seconds;
  auto left = static_cast<int64_t>(static_cast<double>(last - done) / rate);
  std::string bar(24, '.');
  std::fill_n(bar.begin(), 24 * (done - first) / std::max<int64_t>(1, last - first), '#');
  std::fprintf(stderr, "\r[%s] %lld/%lld  loss %.4f  %.0f tokens/s  ETA %lld:%02lld ", bar.c_str(),
               static_cast<long long>(done), static_cast<long long>(last), loss,
               rate * static_cast<double>(tokens_a_step), static_cast<long long>(left / 60),
               static_cast<long long>(left % 60));
}

int run(const Options& options) {
  std::filesystem::create_directories(options.text("--out"));
  std::string checkpoint = rushlight::cat(options.text("--out"), "/gpt.safetensors");
  gpt::Text data = gpt::read_text(options.text("--text"));
  rushlight::manual_seed(static_cast<uint64_t>(options.integer("--seed")));
  gpt::GPT model(gpt::Shape{static_cast<int64_t>(data.alphabet.size()),
                            options.integer("--context"), options.integer("--layers"),
                            options.integer("--width"), options.integer("--heads")});
  rushlight::optim::AdamW optimizer = optimizer_of(model, options);
  int64_t first = options.on("--resume") ? load(checkpoint, model, optimizer) : 0;
  int64_t steps = options.integer("--steps");
  int64_t last = options.on("--stop") ? std::min(options.integer("--stop"), steps) : steps;
  int64_t context = options.integer("--context");
  int64_t batch_size = options.integer("--batch");
  int64_t every = options.integer("--evaluate-every");
  auto began = std::chrono::steady_clock::now();
  auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  for (int64_t step = first; step < last; ++step) {
    optimizer.set_lr(learning_rate(step, options));
    Tensor starts =
        rushlight::randint(data.train.size(0) - context, {batch_size}, rushlight::DType::Int64);
    gpt::Batch taken = gpt::batch(data.train, starts, context);
    Tensor loss = model->loss(taken.x, taken.y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    double value = loss.item<double>();
    if (options.on("--print-losses")) {
      std::printf("step %lld: loss %.9g\n", static_cast<long long>(step), value);
    }
    show(step + 1, first, last, value, seconds(), batch_size * context);
    if (every != 0 && (step + 1) % every == 0) {
      double held_out = validation_loss(model, data.held_out, kValidationWindows);
      std::printf("step %lld: validation loss %.9g\n", static_cast<long long>(step + 1), held_out);
      std::fflush(stdout);
    }
  }
  std::fprintf(stderr, "\n");
  save(checkpoint, model, optimizer, last);
  std::printf("%lld steps in %.1f s; checkpoint %s\n", static_cast<long long>(last - first),
              seconds(), checkpoint.c_str());
  if (last == steps && every != 0) {
    std::printf("validation loss %.9g nats a character\n",
                validation_loss(model, data.held_out, kFinalWindows));
  }
  if (last == steps && options.integer("--sample") != 0) {
    rushlight::Generator generator(static_cast<uint64_t>(options.integer("--seed")));
    std::string written;
    for (int64_t token : model->sample({0}, options.integer("--sample"),
                                       options.real("--temperature"), generator)) {
      written += data.alphabet[static_cast<size_t>(token)];
    }
    std::puts(written.c_str());
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(Options(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

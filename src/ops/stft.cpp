// Transforms of the windows of a signal, and back.
#include <rushlight/generated/functions.h>

#include "ops/operator.h"

namespace rushlight {
namespace {

enum Normalization : int64_t { kNone = 0, kByRoot = 1, kBySize = 2 };

// What both directions are told.
struct Settings {
  std::string_view op;
  int64_t n_fft;
  int64_t hop;
  int64_t win;
};

template <typename... Parts>
[[noreturn]] void refuse(const Settings& settings, const Tensor& self, const Parts&... parts) {
  fail(ErrorKind::Runtime, "", settings.op, "(", scalar_type_name(self.dtype()), self.sizes(),
       ", n_fft=", settings.n_fft, ", hop_length=", settings.hop, ", win_length=", settings.win,
       "): ", parts...);
}

Tensor times(const Tensor& frames, const Tensor& window) {
  if (!frames.is_complex() && !window.is_complex()) {
    return mul(frames, window);
  }
  if (!window.is_complex()) {
    return view_as_complex(contiguous(mul(view_as_real(frames), unsqueeze(window, -1))));
  }
  const Tensor pairs = view_as_real(window);
  const Tensor re = select(pairs, -1, 0);
  const Tensor im = select(pairs, -1, 1);
  if (!frames.is_complex()) {
    return complex(mul(frames, re), mul(frames, im));
  }
  const Tensor numbers = view_as_real(frames);
  const Tensor a = select(numbers, -1, 0);
  const Tensor b = select(numbers, -1, 1);
  return complex(sub(mul(a, re), mul(b, im)), add(mul(a, im), mul(b, re)));
}

// The window in the middle of n_fft points, zeros around it; undefined where it is all ones.
Tensor middle_window(const Settings& settings, const Tensor& window, TensorOptions options) {
  if (!window.defined() && settings.win == settings.n_fft) {
    return window;
  }
  const Tensor given = window.defined() ? window : ones({settings.win}, options);
  const int64_t before = (settings.n_fft - settings.win) / 2;
  const int64_t after = settings.n_fft - settings.win - before;
  return before + after == 0 ? given : constant_pad_nd(given, {before, after}, Scalar(0));
}

void warn_of_no_window(const Tensor& window, std::string_view advice) {
  if (!window.defined()) {
    warn(cat(
        "A window was not provided. A rectangular window will be applied, which is known to cause "
        "spectral leakage; window=torch.ones(n_fft) says that it is wanted.",
        advice));
  }
}

Tensor pad_signal(const Tensor& self, int64_t amount, std::string_view mode) {
  if (mode == "constant") {
    return constant_pad_nd(self, {amount, amount}, Scalar(0));
  }
  // Other modes want a batch and channels.
  IntList sizes(self.sizes());
  while (sizes.size() < 3) {
    sizes.insert(0, 1);
  }
  const Tensor padded = pad(view(self, sizes), {amount, amount}, mode);
  IntList made(self.sizes());
  if (!made.empty()) {
    made.back() = padded.size(-1);
  }
  return view(padded, made);
}

void check_signal(const Settings& settings, const Tensor& self, const Tensor& window) {
  if (!self.is_floating_point() && !self.is_complex()) {
    refuse(settings, self, "expected a tensor of floating point or complex values");
  }
  if (self.dim() > 2 || self.dim() < 1) {
    refuse(settings, self, "expected a 1D or 2D tensor");
  }
  const int64_t length = self.size(-1);
  if (settings.n_fft <= 0 || settings.n_fft > length) {
    refuse(settings, self, "expected 0 < n_fft < ", length, ", but got n_fft=", settings.n_fft);
  }
  if (settings.hop <= 0) {
    refuse(settings, self, "expected hop_length > 0, but got hop_length=", settings.hop);
  }
  if (settings.win <= 0 || settings.win > settings.n_fft) {
    refuse(settings, self, "expected 0 < win_length <= n_fft, but got win_length=", settings.win);
  }
  if (window.defined() && (window.dim() != 1 || window.size(0) != settings.win)) {
    refuse(settings, self, "expected a 1D window tensor of size equal to win_length=", settings.win,
           ", but got window with size ", window.sizes());
  }
}

// Complex results, unless asked for otherwise; of real numbers it has to be said which.
bool wants_complex(const Tensor& self, const Tensor& window, std::optional<bool> asked) {
  if (!asked && !self.is_complex() && !(window.defined() && window.is_complex())) {
    fail(ErrorKind::Runtime, "",
         "stft requires the return_complex parameter be given for real inputs, and will further "
         "require that return_complex=True in a future PyTorch release.");
  }
  return asked.value_or(true);
}

Tensor transform_frames(const Tensor& frames, int64_t normalization, bool onesided) {
  return frames.is_complex() ? _fft_c2c(frames, {-1}, normalization, true)
                             : _fft_r2c(frames, {-1}, normalization, onesided);
}

Tensor stft_of(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop,
               std::optional<int64_t> win, const Tensor& window, bool center,
               std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
               std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  const Settings settings{"stft", n_fft, hop.value_or(n_fft / 4), win.value_or(n_fft)};
  const bool as_complex = wants_complex(self, window, return_complex);
  warn_of_no_window(window, "");
  if (center && align_to_window) {
    fail(ErrorKind::Runtime, "", "stft align_to_window should only be set when center = false");
  }
  const Tensor padded = center ? pad_signal(self, n_fft / 2, pad_mode) : self;
  check_signal(settings, padded, window);
  const bool complex_values = self.is_complex() || (window.defined() && window.is_complex());
  if (complex_values && onesided.value_or(false)) {
    fail(ErrorKind::Runtime, "", "Cannot have onesided output if window or input is complex");
  }
  Tensor signal = self.dim() == 1 ? unsqueeze(padded, 0) : padded;
  if (align_to_window.value_or(false)) {
    const int64_t before = (n_fft - settings.win) / 2;
    signal = constant_pad_nd(signal, {before, n_fft - settings.win - before}, Scalar(0));
  }
  const TensorOptions options = TensorOptions(real_dtype(self.dtype())).device(self.device());
  const Tensor middle = middle_window(settings, window, options);
  Tensor frames = unfold(signal, -1, n_fft, settings.hop);
  if (middle.defined()) {
    frames = times(frames, middle);
  }
  const Tensor made = transpose(
      transform_frames(frames, normalized ? kByRoot : kNone, onesided.value_or(!complex_values)), 1,
      2);
  const Tensor result = self.dim() == 1 ? squeeze(made, 0) : made;
  return as_complex ? result : view_as_real(result);
}

Tensor stft_plain(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop,
                  std::optional<int64_t> win, const Tensor& window, bool normalized,
                  std::optional<bool> onesided, std::optional<bool> return_complex,
                  std::optional<bool> align_to_window) {
  return stft_of(self, n_fft, hop, win, window, false, "constant", normalized, onesided,
                 return_complex, align_to_window);
}

void check_frames(const Settings& settings, const Tensor& self, const Tensor& window,
                  bool onesided) {
  if (self.numel() == 0) {
    refuse(settings, self, "input tensor cannot be empty.");
  }
  if (self.dim() != 2 && self.dim() != 3) {
    refuse(settings, self, "expected a tensor with 3 or 4 dimensions, but got ", self.dim() + 1);
  }
  const int64_t count = self.size(-2);
  if (onesided && count != settings.n_fft / 2 + 1) {
    refuse(settings, self,
           "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft "
           "/ 2 + 1 when onesided=True, but got ",
           count);
  }
  if (!onesided && count != settings.n_fft) {
    refuse(settings, self,
           "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft "
           "when onesided=False, but got ",
           count);
  }
  if (settings.hop <= 0 || settings.hop > settings.win) {
    refuse(settings, self, "expected 0 < hop_length <= win_length");
  }
  if (settings.win <= 0 || settings.win > settings.n_fft) {
    refuse(settings, self, "expected 0 < win_length <= n_fft");
  }
  if (window.defined() && (window.dim() != 1 || window.size(0) != settings.win)) {
    refuse(settings, self, "Invalid window shape. window has to be 1D and length of `win_length`");
  }
}

// Frames of n_fft numbers, from transforms (B, T, F). Of a real signal the first half says all.
Tensor frames_of(const Tensor& turned, int64_t n_fft, int64_t normalization, bool return_complex) {
  if (return_complex) {
    return _fft_c2c(turned, {-1}, normalization, false);
  }
  return _fft_c2r(narrow(turned, -1, 0, n_fft / 2 + 1), {-1}, normalization, n_fft);
}

// Frames (B, T, n_fft) added up where they overlap.
Tensor overlapped(const Tensor& frames, int64_t length, int64_t hop) {
  const int64_t n_fft = frames.size(-1);
  if (!frames.is_complex()) {
    return unfold_backward(frames, {frames.size(0), length}, 1, n_fft, hop);
  }
  const Tensor pairs = view_as_real(frames);
  return complex(overlapped(select(pairs, -1, 0), length, hop),
                 overlapped(select(pairs, -1, 1), length, hop));
}

// Windows that cancel each other leave nothing to recover the signal from.
void check_overlap(const Settings& settings, const Tensor& self, const Tensor& weight) {
  if (weight.is_meta()) {
    return;
  }
  const Tensor size =
      weight.is_complex() ? norm(view_as_real(weight), Scalar(2), {-1}, false) : abs(weight);
  if (!all(gt(size, Scalar(1e-11))).item<bool>()) {
    refuse(settings, self, "window overlap add min: expected more than 1e-11");
  }
}

Tensor over(const Tensor& signal, const Tensor& weight) {
  if (!signal.is_complex()) {
    return div(signal, weight);
  }
  if (!weight.is_complex()) {
    return view_as_complex(div(view_as_real(signal), unsqueeze(weight, -1)));
  }
  const Tensor pairs = view_as_real(weight);
  const Tensor re = select(pairs, -1, 0);
  const Tensor im = select(pairs, -1, 1);
  const Tensor size = add(mul(re, re), mul(im, im));
  return times(signal, complex(div(re, size), div(neg(im), size)));
}

// The first result that is kept, and the number of them.
std::pair<int64_t, int64_t> kept(int64_t n_fft, int64_t whole, bool center,
                                 std::optional<int64_t> length) {
  const int64_t start = center ? n_fft / 2 : 0;
  return {start, length.value_or(whole - 2 * start)};
}

Tensor istft_of(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop,
                std::optional<int64_t> win, const Tensor& window, bool center, bool normalized,
                std::optional<bool> onesided, std::optional<int64_t> length, bool return_complex) {
  const Settings settings{"istft", n_fft, hop.value_or(n_fft / 4), win.value_or(n_fft)};
  if (!self.is_complex()) {
    fail(ErrorKind::Runtime, "",
         "istft requires a complex-valued input tensor matching the output from stft with "
         "return_complex=True.");
  }
  const bool one_sided = onesided.value_or(self.size(-2) != n_fft);
  check_frames(settings, self, window, one_sided);
  warn_of_no_window(window, " Please provide the same window used by stft.");
  if (return_complex && one_sided) {
    fail(ErrorKind::Runtime, "", "Cannot have onesided output if window or input is complex");
  }
  if (window.defined() && window.is_complex() && !return_complex) {
    fail(ErrorKind::Runtime, "", "Complex windows are incompatible with return_complex=False");
  }
  const TensorOptions options = TensorOptions(real_dtype(self.dtype())).device(self.device());
  const Tensor middle = middle_window(settings, window, options);
  const Tensor turned = transpose(self.dim() == 2 ? unsqueeze(self, 0) : self, 1, 2);
  const Tensor frames = frames_of(turned, n_fft, normalized ? kByRoot : kBySize, return_complex);
  const int64_t count = turned.size(1);
  const int64_t whole = n_fft + settings.hop * (count - 1);
  const Tensor factors = middle.defined() ? middle : ones({n_fft}, options);
  const Tensor signal = overlapped(times(frames, factors), whole, settings.hop);
  const Tensor squares = expand(times(factors, factors), {1, count, n_fft});
  const Tensor weight = overlapped(squares, whole, settings.hop);
  const auto [start, wanted] = kept(n_fft, whole, center, length);
  const int64_t there = std::max<int64_t>(std::min(start + wanted, whole) - start, 0);
  const Tensor under = narrow(weight, -1, start, there);
  check_overlap(settings, self, under);
  Tensor made = over(narrow(signal, -1, start, there), under);
  if (there < wanted) {
    warn(
        "The length of signal is shorter than the length parameter. Result is being padded with "
        "zeros in the tail. Please check your center and hop_length settings.");
    made = constant_pad_nd(made, {0, wanted - there}, Scalar(0));
  }
  return self.dim() == 2 ? squeeze(made, 0) : made;
}

}  // namespace

RUSHLIGHT_OPERATORS(stft) {
  op("stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
     "Tensor? window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, "
     "bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
     kFunction | kMethod)
      .doc(
          "The transforms (B, F, T) of windows of signals (B, L) or (L): n_fft points every "
          "hop_length, times `window`. `center`: the signal is padded by n_fft / 2 first, so that "
          "window t is about point t hop_length.")
      .composition(stft_of);
  op("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
     "Tensor? window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, "
     "bool? align_to_window=None) -> Tensor",
     kFunction | kMethod)
      .doc("The same without padding.")
      .composition(stft_plain);
  op("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
     "Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, "
     "int? length=None, bool return_complex=False) -> Tensor",
     kFunction | kMethod)
      .doc(
          "The signal that stft was given: the windows added up, over the sum of their squares. "
          "`length`: of the result.")
      .composition(istft_of);
}

}  // namespace rushlight

#include <rushlight/device.h>
#include <rushlight/error.h>

#include <charconv>

namespace rushlight {

Device::Device(std::string_view text) {
  std::string_view kind = text.substr(0, text.find(':'));
  if (kind == "cpu") {
    type = DeviceType::CPU;
  } else if (kind == "meta") {
    type = DeviceType::Meta;
  } else {
    fail(ErrorKind::Runtime, "device", "Expected one of cpu, meta device type at start of device ",
         "string: ", text);
  }
  if (kind.size() == text.size()) {
    return;
  }
  std::string_view number = text.substr(kind.size() + 1);
  int value = -1;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || value < 0 || value > 127) {
    fail(ErrorKind::Runtime, "device", "Invalid device string: '", text, "'");
  }
  index = static_cast<int8_t>(value);
}

std::string Device::to_string() const {
  std::string text = type == DeviceType::CPU ? "cpu" : "meta";
  return index < 0 ? text : text + ":" + std::to_string(index);
}

}  // namespace rushlight

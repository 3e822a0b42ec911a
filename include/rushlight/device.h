// Where a tensor's memory is: `cpu`, or `meta` (shapes and dtypes only, no memory).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rushlight {

enum class DeviceType : uint8_t { CPU, Meta };

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current one
  Device() = default;
  Device(DeviceType t, int8_t i = -1) : type(t), index(i) {}
  explicit Device(std::string_view text);  // "cpu", "cpu:0", "meta"; Error(Runtime) else
  bool operator==(const Device& other) const { return type == other.type; }
  bool is_cpu() const { return type == DeviceType::CPU; }
  bool is_meta() const { return type == DeviceType::Meta; }
  std::string to_string() const;
};

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
enum class LayoutKind : uint8_t { Strided, Sparse, SparseCsr, Mkldnn };

}  // namespace rushlight

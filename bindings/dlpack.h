// The structures of the DLPack exchange format, versions 0.8 and 1.x, in our own words.
#pragma once

#include <cstdint>

namespace rushlight::dlpack {

inline constexpr int32_t kCpu = 1;

enum class Code : uint8_t {
  Int = 0,
  UInt = 1,
  Float = 2,
  BFloat = 4,
  Complex = 5,
  Bool = 6,
  Float8E4M3FN = 10,
  Float8E4M3FNUZ = 11,
  Float8E5M2 = 12,
  Float8E5M2FNUZ = 13,
  Float8E8M0FNU = 14,
};

struct DeviceId {
  int32_t type;
  int32_t index;
};

struct ElementType {
  Code code;
  uint8_t bits;
  uint16_t lanes;
};

struct View {
  void* data;
  DeviceId device;
  int32_t rank;
  ElementType type;
  int64_t* sizes;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};

struct Managed {  // capsule "dltensor"
  View view;
  void* context;
  void (*deleter)(Managed* self);
};

struct Version {
  uint32_t major;
  uint32_t minor;
};

inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint64_t kCopied = 2;

struct ManagedVersioned {  // capsule "dltensor_versioned"
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  View view;
};

}  // namespace rushlight::dlpack

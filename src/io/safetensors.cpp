#include <rushlight/safetensors.h>

#include <algorithm>
#include <cstring>

#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/safetensors_header.h"
#include "ops/elementwise.h"

namespace rushlight::safetensors {

struct File::Contents {
  std::shared_ptr<const void> owner;
  const char* data = nullptr;
  Header header;
};

namespace {

using Owner = std::shared_ptr<const void>;

void release_owner(StorageImpl* storage) {
  delete static_cast<Owner*>(storage->context);
}

// Data at the end of the header, kept while any tensor over it lives.
Tensor over(const Owner& owner, const char* data, const Entry& entry) {
  const IntList strides = contiguous_strides(entry.sizes);
  const bool aligned =
      reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(element_size(entry.dtype)) == 0;
  if (!aligned || entry.begin == entry.end) {
    const Tensor copy = make_tensor(entry.sizes, entry.dtype);
    if (entry.end != entry.begin) {
      std::memcpy(copy.data(), data, entry.end - entry.begin);
    }
    return copy;
  }
  auto context = std::make_unique<Owner>(owner);
  const Tensor tensor = make_foreign(const_cast<char*>(data), entry.sizes, strides, entry.dtype,
                                     release_owner, context.get());
  context.release();
  return tensor;
}

struct Prepared {
  std::vector<Entry> entries;
  TensorList tensors;  // contiguous, in the order of the entries
  std::string header;
};

Prepared prepare(const NamedTensors& named, const Metadata& metadata) {
  Prepared out;
  std::vector<std::pair<std::string_view, const Tensor*>> order;
  for (const auto& [name, tensor] : named) {
    if (!tensor.defined() || tensor.is_meta()) {
      fail(ErrorKind::Value, "safetensors", "tensor '", name, "' has no data");
    }
    if (name == "__metadata__") {
      fail(ErrorKind::Value, "safetensors", "'__metadata__' cannot name a tensor");
    }
    dtype_text(tensor.dtype());
    order.emplace_back(name, &tensor);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return dtype_rank(a.second->dtype()) > dtype_rank(b.second->dtype());
  });
  uint64_t begin = 0;
  for (const auto& [name, tensor] : order) {
    Tensor source = *tensor;
    if (!source.is_contiguous()) {
      source = make_tensor(tensor->sizes(), tensor->dtype());
      assign(source, *tensor);
    }
    const auto bytes = static_cast<uint64_t>(source.nbytes());
    out.entries.push_back(
        {std::string(name), source.dtype(), IntList(source.sizes()), begin, begin + bytes});
    out.tensors.push_back(std::move(source));
    begin += bytes;
  }
  out.header = write_header(out.entries, metadata);
  return out;
}

}  // namespace

File::File(const std::string& path) {
  const std::shared_ptr<const io::MappedFile> file = io::MappedFile::open(path);
  auto contents = std::make_shared<Contents>();
  contents->owner = file;
  contents->data = file->data();
  contents->header = read_header(file->data(), file->size());
  contents_ = std::move(contents);
}

File::File(std::shared_ptr<const void> owner, const void* data, size_t size) {
  auto contents = std::make_shared<Contents>();
  contents->owner = std::move(owner);
  contents->data = static_cast<const char*>(data);
  contents->header = read_header(contents->data, size);
  contents_ = std::move(contents);
}

const std::vector<Entry>& File::entries() const {
  return contents_->header.entries;
}

const Metadata& File::metadata() const {
  return contents_->header.metadata;
}

const Entry& File::entry(std::string_view name) const {
  for (const Entry& entry : entries()) {
    if (entry.name == name) {
      return entry;
    }
  }
  fail(ErrorKind::Key, "safetensors", "File does not contain tensor ", name);
}

Tensor File::tensor(std::string_view name) const {
  const Entry& found = entry(name);
  return over(contents_->owner, contents_->data + contents_->header.data_begin + found.begin,
              found);
}

NamedTensors File::tensors() const {
  NamedTensors named;
  for (const Entry& entry : entries()) {
    named.emplace(entry.name,
                  over(contents_->owner,
                       contents_->data + contents_->header.data_begin + entry.begin, entry));
  }
  return named;
}

NamedTensors load_file(const std::string& path) {
  return File(path).tensors();
}

void save_file(const NamedTensors& tensors, const std::string& path, const Metadata& metadata) {
  const Prepared prepared = prepare(tensors, metadata);
  io::AtomicFile file(path);
  file.write(prepared.header.data(), prepared.header.size());
  for (const Tensor& tensor : prepared.tensors) {
    if (tensor.numel() != 0) {
      file.write(tensor.data(), static_cast<size_t>(tensor.nbytes()));
    }
  }
  file.commit();
}

std::string save(const NamedTensors& tensors, const Metadata& metadata) {
  const Prepared prepared = prepare(tensors, metadata);
  std::string out = prepared.header;
  out.reserve(out.size() + (prepared.entries.empty() ? 0 : prepared.entries.back().end));
  for (const Tensor& tensor : prepared.tensors) {
    if (tensor.numel() != 0) {
      out.append(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.nbytes()));
    }
  }
  return out;
}

}  // namespace rushlight::safetensors

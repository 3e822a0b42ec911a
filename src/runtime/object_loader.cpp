#include "runtime/object_loader.h"

#include <elf.h>
#include <rushlight/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "runtime/math_helpers.h"

namespace rushlight {
namespace {

// Jumps to an address anywhere: jmp *2(%rip) after two bytes of padding, then the address.
constexpr size_t kStubSize = 16;

class Loader {
 public:
  explicit Loader(std::string_view bytes) : bytes_(bytes) {}

  void* load(const char* symbol) {
    read_headers();
    place_sections();
    copy_sections();
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (sections_[i].sh_type == SHT_RELA) {
        relocate(sections_[i]);
      }
    }
    if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0) {
      throw std::runtime_error("mprotect refused to make generated code executable");
    }
    for (size_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i].st_shndx != SHN_UNDEF && name_of(symbols_[i]) == symbol) {
        void* address = memory_ + offset_of(i);
        memory_ = nullptr;  // keep the mapping
        return address;
      }
    }
    throw std::runtime_error("the object lacks the symbol " + std::string(symbol));
  }

  ~Loader() {
    if (memory_) {
      munmap(memory_, size_);
    }
  }

 private:
  template <typename T>
  T read(uint64_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) {
      throw std::runtime_error("the object is truncated");
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  template <typename T>
  std::vector<T> read_table(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      throw std::runtime_error("the object is truncated");
    }
    std::vector<T> table(size / sizeof(T));
    if (!table.empty()) {  // which has no address, and may not be copied
      std::memcpy(table.data(), bytes_.data() + offset, table.size() * sizeof(T));
    }
    return table;
  }

  void read_headers() {
    Elf64_Ehdr header = read<Elf64_Ehdr>(0);
    bool known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_REL &&
                 header.e_machine == EM_X86_64 && header.e_shentsize == sizeof(Elf64_Shdr);
    if (!known) {
      throw std::runtime_error("not an x86-64 relocatable object");
    }
    sections_ =
        read_table<Elf64_Shdr>(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_SYMTAB) {
        symbols_ = read_table<Elf64_Sym>(section.sh_offset, section.sh_size);
        const Elf64_Shdr& names = sections_.at(section.sh_link);
        std::vector<char> text = read_table<char>(names.sh_offset, names.sh_size);
        names_.assign(text.data(), text.size());
      }
    }
  }

  std::string name_of(const Elf64_Sym& symbol) const {
    return symbol.st_name < names_.size() ? std::string(names_.c_str() + symbol.st_name) : "";
  }

  void place_sections() {
    offsets_.assign(sections_.size(), UINT64_MAX);
    uint64_t end = 0;
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      if ((section.sh_flags & SHF_ALLOC) == 0) {
        continue;
      }
      uint64_t align = section.sh_addralign > 1 ? section.sh_addralign : 1;
      if ((align & (align - 1)) != 0 || align > 4096 || section.sh_size > (1u << 28)) {
        throw std::runtime_error("a section of the object is malformed");
      }
      end = (end + align - 1) & ~(align - 1);
      offsets_[i] = end;
      end += section.sh_size;
    }
    stubs_ = (end + 15) & ~uint64_t{15};
    size_t undefined = 0;
    for (const Elf64_Sym& symbol : symbols_) {
      undefined += symbol.st_shndx == SHN_UNDEF ? 1 : 0;
    }
    end = stubs_ + undefined * kStubSize;
    uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    size_ = (end + page) & ~(page - 1);
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("no memory for generated code");
    }
    memory_ = static_cast<char*>(memory);
  }

  void copy_sections() {
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (offsets_[i] != UINT64_MAX && sections_[i].sh_type != SHT_NOBITS) {
        std::vector<char> content = read_table<char>(sections_[i].sh_offset, sections_[i].sh_size);
        std::copy(content.begin(), content.end(), memory_ + offsets_[i]);
      }
    }
  }

  // Where a symbol lies in the mapping. An undefined one gets a stub that jumps to it; the stub's
  // second half is also its slot in the global offset table.
  uint64_t offset_of(size_t index) {
    const Elf64_Sym& symbol = symbols_.at(index);
    if (symbol.st_shndx != SHN_UNDEF) {
      uint64_t base = offsets_.at(symbol.st_shndx);
      if (base == UINT64_MAX || symbol.st_value > size_ - base) {
        throw std::runtime_error("a symbol of the object lies outside of it");
      }
      return base + symbol.st_value;
    }
    auto found = stub_of_.find(index);
    if (found != stub_of_.end()) {
      return found->second;
    }
    void* target = find_helper(name_of(symbol));
    if (!target) {
      throw std::runtime_error("generated code calls the unknown function " + name_of(symbol));
    }
    uint64_t offset = stubs_ + stub_of_.size() * kStubSize;
    const unsigned char jump[8] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x90, 0x90};
    std::memcpy(memory_ + offset, jump, sizeof(jump));
    std::memcpy(memory_ + offset + 8, &target, sizeof(target));
    stub_of_.emplace(index, offset);
    return offset;
  }

  void relocate(const Elf64_Shdr& section) {
    uint64_t base = offsets_.at(section.sh_info);
    if (base == UINT64_MAX) {
      return;
    }
    for (const Elf64_Rela& entry : read_table<Elf64_Rela>(section.sh_offset, section.sh_size)) {
      uint64_t place = base + entry.r_offset;
      if (entry.r_offset > sections_[section.sh_info].sh_size || place + 8 > size_) {
        throw std::runtime_error("a relocation of the object lies outside of it");
      }
      size_t index = ELF64_R_SYM(entry.r_info);
      uint64_t target = offset_of(index);
      uint64_t here = reinterpret_cast<uint64_t>(memory_);
      int64_t relative = static_cast<int64_t>(target - place) + entry.r_addend;
      switch (ELF64_R_TYPE(entry.r_info)) {
        case R_X86_64_64:
          write(place, here + target + static_cast<uint64_t>(entry.r_addend));
          break;
        case R_X86_64_PC32:
        case R_X86_64_PLT32:
          write(place, static_cast<int32_t>(relative));
          break;
        case R_X86_64_PC64:
          write(place, relative);
          break;
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX:
          if (symbols_[index].st_shndx != SHN_UNDEF) {
            throw std::runtime_error("the object has an unexpected relocation");
          }
          write(place, static_cast<int32_t>(relative + 8));
          break;
        default:
          throw std::runtime_error("the object has an unknown relocation");
      }
    }
  }

  template <typename T>
  void write(uint64_t place, T value) {
    std::memcpy(memory_ + place, &value, sizeof(T));
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string names_;
  std::vector<uint64_t> offsets_;  // of a section in the mapping
  std::unordered_map<size_t, uint64_t> stub_of_;
  uint64_t stubs_ = 0;
  uint64_t size_ = 0;
  char* memory_ = nullptr;
};

void run_interpreter(const loop::KernelArgs* args, int64_t begin, int64_t end,
                     const loop::Kernel* kernel) {
  loop::interpret(*kernel, *args, begin, end);
}

}  // namespace

void* load_object(std::string_view bytes, const char* symbol, std::string* error) {
  try {
    Loader loader(bytes);
    return loader.load(symbol);
  } catch (const std::exception& e) {
    *error = e.what();
    return nullptr;
  }
}

// A kernel function carries no context, so each thunk is code that passes the kernel as a fourth
// argument: mov $kernel, %rcx; mov $run_interpreter, %rax; jmp *%rax.
loop::KernelFunction make_interpreter_thunk(const loop::Kernel& kernel) {
  unsigned char code[22] = {0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0,    0x48,
                            0xb8, 0,    0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
  const loop::Kernel* context = &kernel;
  auto* target = &run_interpreter;
  std::memcpy(code + 2, &context, sizeof(context));
  std::memcpy(code + 12, &target, sizeof(target));
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  RUSHLIGHT_ASSERT(memory != MAP_FAILED);
  std::memcpy(memory, code, sizeof(code));
  RUSHLIGHT_ASSERT(mprotect(memory, page, PROT_READ | PROT_EXEC) == 0);
  return reinterpret_cast<loop::KernelFunction>(memory);
}

}  // namespace rushlight

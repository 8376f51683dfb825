// SPDX-License-Identifier: Apache-2.0
// The functions that kernels call and no module defines: vprintf, behind printf of CUDA C++, and
// __assertfail, behind assert. Lanes call them one after the other. What they print goes to stdout at once;
// between CTAs in no order.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "builder.h"
#include "inline_calls.h"
#include "machine.h"
#include "undefined.h"

namespace fa4::sim {
namespace {

using ptx::Operand;

struct SystemCall {
  std::string_view name;
  size_t returns, params;
};
constexpr SystemCall kVprintf{"vprintf", 1, 2}, kAssertFail{"__assertfail", 0, 5};

// Bytes from a generic address to the end of what they lie in; null where there is nothing to read.
const char* readable(const Warp& w, int lane, uint64_t address, uint64_t* bytes) {
  if (address >= kLocalWindow && address < kLocalWindow + kWindowBytes) {
    const uint64_t at = address - kLocalWindow, size = w.code->local_bytes;
    if (at >= size) return nullptr;
    *bytes = size - at;
    return reinterpret_cast<const char*>(w.local.data() + size_t(lane) * size + at);
  }
  uint64_t start = 0, size = 0;
  if (!w.cta->launch->memory->find(address, &start, &size)) return nullptr;
  *bytes = start + size - address;
  return reinterpret_cast<const char*>(w.cta->launch->memory->at(address, *bytes));
}

// What lies at a generic address is nothing undefined.
void require_defined(const Warp& w, const Op* op, int lane, uint64_t address, uint64_t bytes) {
  if (address >= kLocalWindow && address < kLocalWindow + kWindowBytes) require_defined_local(w, op, lane, address - kLocalWindow, bytes);
}

std::string string_at(const Warp& w, const Op* op, int lane, uint64_t address) {
  uint64_t bytes = 0;
  const char* text = readable(w, lane, address, &bytes);
  const void* end = text ? std::memchr(text, 0, bytes) : nullptr;
  if (!end)
    fault(w, op, Fault::Kind::illegal_address,
          "lane " + std::to_string(lane) + ": a string of a function call is not in readable memory");
  std::string whole(text, static_cast<const char*>(end));
  require_defined(w, op, lane, address, whole.size() + 1);
  return whole;
}

template <typename T>
T parameter(const Warp& w, const Op* op, int lane, uint64_t offset) {
  require_defined_local(w, op, lane, offset, sizeof(T));
  T value;
  std::memcpy(&value, w.local.data() + size_t(lane) * w.code->local_bytes + offset, sizeof value);
  return value;
}

// The arguments of a vprintf: each aligned to its own size, 4 or 8 bytes.
class Arguments {
 public:
  Arguments(const Warp& w, const Op* op, int lane, uint64_t address)
      : w_(w), op_(op), lane_(lane), address_(address) {}
  uint64_t next(uint32_t size) {
    at_ = (at_ + size - 1) / size * size;
    uint64_t bytes = 0, value = 0;
    const char* from = readable(w_, lane_, address_ + at_, &bytes);
    if (!from || bytes < size)
      fault(w_, op_, Fault::Kind::illegal_address,
            "lane " + std::to_string(lane_) + ": vprintf has fewer arguments than its format asks for");
    require_defined(w_, op_, lane_, address_ + at_, size);
    std::memcpy(&value, from, size);
    at_ += size;
    ++count_;
    return value;
  }
  uint32_t count() const { return count_; }

 private:
  const Warp& w_;
  const Op* op_;
  int lane_;
  uint64_t address_, at_ = 0;
  uint32_t count_ = 0;
};

template <typename T>
void append(std::string& to, const std::string& conversion, T value) {
  char text[512];
  const int length = std::snprintf(text, sizeof text, conversion.c_str(), value);
  to.append(text, size_t(std::clamp(length, 0, int(sizeof text) - 1)));
}

// A conversion that is not one is printed as it stands.
std::string formatted(const Warp& w, const Op* op, int lane, const std::string& format,
                      Arguments& arguments) {
  std::string text;
  for (size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      text += format[i++];
      continue;
    }
    const size_t flags_end = std::min(format.find_first_not_of("-+ #0123456789.", i + 1), format.size());
    const size_t sizes_end = std::min(format.find_first_not_of("hl", flags_end), format.size());
    const std::string flags = format.substr(i, flags_end - i);
    const bool is_long = format.substr(flags_end, sizes_end - flags_end).find('l') != std::string::npos;
    const char conversion = sizes_end < format.size() ? format[sizes_end] : '\0';
    switch (conversion) {
      case '%':
        text += '%';
        break;
      case 'd':
      case 'i':
        append(text, flags + "lld",
               is_long ? static_cast<long long>(arguments.next(8))
                       : static_cast<long long>(int32_t(arguments.next(4))));
        break;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        append(text, flags + "ll" + conversion,
               static_cast<unsigned long long>(arguments.next(is_long ? 8 : 4)));
        break;
      case 'c':
        append(text, flags + "c", int(arguments.next(4)));
        break;
      case 'p':
        append(text, flags + "p", reinterpret_cast<void*>(arguments.next(8)));
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A': {
        const uint64_t bits = arguments.next(8);
        double value;
        std::memcpy(&value, &bits, 8);
        append(text, flags + conversion, value);
        break;
      }
      case 's': {
        const std::string string = string_at(w, op, lane, arguments.next(8));
        if (flags == "%")
          text += string;
        else
          append(text, flags + "s", string.c_str());
        break;
      }
      default:
        text += format.substr(i, sizes_end + 1 - i);
    }
    i = sizes_end + 1;
  }
  return text;
}

// Op::imm, target, join: where in local memory the parameters format and arguments, and the result, are.
const Op* vprintf(Warp& w, const Op* op, Mask mask) {
  static std::mutex one_at_a_time;
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    Arguments arguments(w, op, lane, parameter<uint64_t>(w, op, lane, op->target));
    const std::string text = formatted(
        w, op, lane, string_at(w, op, lane, parameter<uint64_t>(w, op, lane, uint64_t(op->imm))), arguments);
    {
      std::lock_guard guard(one_at_a_time);
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    const uint32_t count = arguments.count();
    std::memcpy(w.local.data() + size_t(lane) * w.code->local_bytes + op->join, &count, 4);
  }
  return op + 1;
}

// Op::imm, target, join: the parameters message, file and line.
const Op* assertion_failed(Warp& w, const Op* op, Mask mask) {
  const int lane = first_lane(mask);
  fault(w, op, Fault::Kind::assertion,
        "lane " + std::to_string(lane) + ": assertion `" +
            string_at(w, op, lane, parameter<uint64_t>(w, op, lane, uint64_t(op->imm))) + "' failed, " +
            string_at(w, op, lane, parameter<uint64_t>(w, op, lane, op->target)) + ":" +
            std::to_string(parameter<uint32_t>(w, op, lane, op->join)));
}

void build_call(Builder& b, Modifiers& m) {
  m.take("uni");
  std::vector<uint64_t> at;  // of the result and the parameters
  std::string_view name;
  for (size_t i = 0; i < b.operand_count(); ++i) {
    const Operand& o = b.operand(i);
    if (o.kind == Operand::Kind::symbol) name = b.function().names[size_t(o.symbol)];
    for (const Operand& e : o.elements) {
      const auto symbol = e.kind == Operand::Kind::symbol ? b.symbol(e.symbol) : std::nullopt;
      if (!symbol || symbol->space != ptx::Space::local)
        b.refuse("parameters of a call are variables in .param space");
      at.push_back(symbol->address);
    }
  }
  const bool prints = name == kVprintf.name;
  Op& op = b.emit(prints ? vprintf : assertion_failed);
  op.cycles = 100;
  op.imm = int64_t(at[prints ? 1 : 0]);
  op.target = uint32_t(at[prints ? 2 : 1]);
  op.join = uint32_t(at[prints ? 0 : 2]);
}

}  // namespace

bool is_system_call(const std::string& name, size_t returns, size_t params) {
  for (const SystemCall& call : {kVprintf, kAssertFail}) {
    if (name == call.name) return returns == call.returns && params == call.params;
  }
  return false;
}

std::vector<FamilyRow> system_call_rows() {
  return {{"call", build_call}};
}

}  // namespace fa4::sim

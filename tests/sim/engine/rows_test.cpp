// SPDX-License-Identifier: Apache-2.0
// Registers share rows of a warp when their lives do not overlap. Random programs of arithmetic, loads, branches,
// loops and asynchronous instructions (wgmma, tcgen05.ld) must come to the same as when no register ever takes
// another's row: the same values, or the same fault.
#include <algorithm>
#include <set>

#include "async.h"
#include "support/catch.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

constexpr uint32_t kThreads = 128, kResults = 4;     // words that a thread stores
constexpr uint32_t kA = 1024, kB = 8192, kWords = 16384;  // bytes of smem: operands of wgmma, 16 bytes a thread

// Of A or B of wgmma.
std::string descriptor(uint32_t at) {
  return std::to_string(uint64_t((kSmem + at) >> 4) | uint64_t(128 >> 4) << 16 | uint64_t(256 >> 4) << 32);
}

enum class Target { threads, wgmma, tcgen05 };

// A random program. It keeps to the rules of registers in flight but for a slip now and then, whose fault must be the
// same as well.
class Writer {
 public:
  Writer(uint64_t seed, Target target) : random_(seed), target_(target) {
    begin();
    const uint32_t statements = 20 + pick(40);
    for (uint32_t i = 0; i < statements; ++i) statement(0);
    end();
  }

  std::string module() const {
    std::string text = entry_of(".param .u64 out", text_, kThreads);
    if (target_ == Target::wgmma) text.replace(text.find("sm_100a"), 7, "sm_90a");
    return text;
  }

 private:
  using Names = std::vector<std::string>;
  // What holds for a register at a point of the program, on some path.
  struct Flight {
    std::set<std::string> loads, open;        // tcgen05.ld; accumulators and A of wgmmas in no group yet
    std::vector<std::set<std::string>> groups;
    std::set<std::string> accessed;           // since the newest wgmma.fence
    bool has(const std::string& name) const {
      return loads.count(name) || open.count(name) ||
             std::any_of(groups.begin(), groups.end(), [&](const auto& g) { return g.count(name) != 0; });
    }
  };

  uint32_t pick(uint32_t n) { return uint32_t(random_.next() % n); }
  bool chance(uint32_t percent) { return pick(100) < percent; }
  bool slips() { return pick(300) == 0; }
  std::string number() { return std::to_string(next_++); }
  void line(const std::string& instruction) { text_ += "  " + instruction + ";\n"; }

  // ---- names: those of an inner scope end with it
  std::string fresh(bool wide) {
    const std::string name = (wide ? "%w" : "%n") + number();
    text_ += std::string("  .reg .b") + (wide ? "64 " : "32 ") + name + ";\n";
    return name;
  }
  const std::string& any(const Names& names) {
    // Those of late more often, so that many registers die young.
    const uint32_t n = uint32_t(names.size()), window = std::min(n, chance(70) ? 6u : n);
    return names[n - 1 - pick(window)];
  }
  Names& names(bool wide) { return wide ? wide_ : narrow_; }
  // A register to read, not in flight.
  std::string source(bool wide = false) {
    const bool slip = slips();
    for (int i = 0; i < 50; ++i) {
      const std::string name = any(names(wide));
      if (flight_.has(name) && !slip) continue;
      flight_.accessed.insert(name);
      return name;
    }
    settle();
    return source(wide);
  }
  // One to write; define() makes a new one known once the instruction stands.
  std::string destination(bool wide = false) {
    const bool slip = slips();
    for (int i = 0; i < 20 && !names(wide).empty() && chance(40); ++i) {
      const std::string name = any(names(wide));
      if (!flight_.has(name) || slip) return name;
    }
    return fresh(wide);
  }
  void define(const std::string& name) {
    Names& all = names(name[1] == 'w');
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    flight_.accessed.insert(name);
  }
  void write(const std::string& before, const std::string& behind, bool wide = false) {
    const std::string d = destination(wide);
    line(before + " " + d + ", " + behind);
    define(d);
  }

  // ---- statements
  void statement(int depth) {
    const uint32_t kind = pick(100);
    if (kind < 45) return arithmetic(depth == 0 || uniform_);
    if (kind < 55) return move();
    if (kind < 62) return branch(depth);
    if (kind < 66) return loop(depth);
    if (target_ == Target::threads || (depth > 0 && !uniform_)) return arithmetic(depth == 0 || uniform_);
    if (target_ == Target::wgmma) {
      if (kind < 84) return wgmma();
      if (kind < 92) return commit();
      if (kind < 98) return wait(chance(30) ? 1 : 0);
      return line("nanosleep.u32 " + std::to_string(pick(400)));
    }
    if (kind < 84) return tmem_load();
    if (kind < 92) return tmem_wait();
    tmem_store();
  }

  void arithmetic(bool converged) {
    const auto lane_wise = [&](const std::string& name) { write(name, source() + ", " + source()); };
    static const Names two = {"add.u32", "sub.u32", "xor.b32", "and.b32", "or.b32", "mul.lo.u32", "mul.hi.u32",
                              "min.s32", "max.u32", "add.f32", "mul.f32", "max.f32", "add.rn.f16x2"};
    switch (pick(converged ? 24 : 18)) {
      case 0: return write("mad.lo.u32", source() + ", " + source() + ", " + source());
      case 1: return write("fma.rn.f32", source() + ", " + source() + ", " + source());
      case 2: return write("prmt.b32", source() + ", " + source() + ", " + std::to_string(pick(65536)));
      case 3: return write("lop3.b32", source() + ", " + source() + ", " + source() + ", " + std::to_string(pick(256)));
      case 4: return write("shl.b32", source() + ", " + std::to_string(pick(32)));
      case 5: return write("mul.wide.u32", source() + ", " + source(), true);
      case 6: return write("add.u64", source(true) + ", " + source(true), true);
      case 7: return write("cvt.u32.u64", source(true));
      case 8: {
        line("setp.lt.u32 %p9, " + source() + ", " + source());
        return write("selp.b32", source() + ", " + source() + ", %p9");
      }
      case 9: {
        line("setp.ne.u32 %p9, " + source() + ", 0");
        const std::string d = any(narrow_);
        if (flight_.has(d)) return;
        line("@%p9 add.u32 " + d + ", " + source() + ", 1");
        return define(d);
      }
      case 10: return line("st.shared.u32 [%word], " + source());
      case 11: return write("ld.shared.u32", "[%word]");
      case 12: {
        const std::string x = destination();
        std::string y = destination();
        if (x == y) y = fresh(false);
        line("ld.shared.v2.u32 {" + x + ", " + y + "}, [%word+8]");
        define(x);
        return define(y);
      }
      case 13: return write("atom.shared.add.u32", "[%word+4], " + source());
      case 14: return write("popc.b32", source());
      case 18: return write("shfl.sync.bfly.b32", source() + ", " + std::to_string(pick(32)) + ", 31, -1");
      case 19: return write("redux.sync.add.u32", source() + ", -1");
      case 20: return write("match.any.sync.b32", source() + ", -1");
      case 21: {
        line("setp.gt.u32 %p9, " + source() + ", 77");
        return write("vote.sync.ballot.b32", "%p9, -1");
      }
      case 22: return mma_sync();
      case 23: {
        line("bar.sync 0");
        const std::string d = destination();
        line("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {" + d + "}, [%matrix]");
        return define(d);
      }
      default: return lane_wise(two[pick(uint32_t(two.size()))]);
    }
  }

  // m16n8k8 on halves: registers of D may be those of sources.
  void mma_sync() {
    const std::string a = source() + ", " + source(), b = source(), c = source() + ", " + source();
    const std::string x = destination();
    std::string y = destination();
    if (x == y) y = fresh(false);
    line("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {" + x + ", " + y + "}, {" + a + "}, {" + b + "}, {" + c + "}");
    define(x);
    define(y);
  }

  // Moves are no accesses: what is moved stays in flight.
  void move() {
    if (chance(25)) {
      const std::string low = source(), high = source();
      return write("mov.b64", "{" + low + ", " + high + "}", true);
    }
    if (chance(20)) {
      const std::string x = destination(), y = fresh(false);
      line("mov.b64 {" + x + ", " + y + "}, " + source(true));
      define(x);
      return define(y);
    }
    const std::string from = any(narrow_), to = destination();
    line("mov.b32 " + to + ", " + from);
    define(to);
    if (from == to) return;
    if (flight_.loads.count(from)) flight_.loads.insert(to);
    if (flight_.open.count(from)) flight_.open.insert(to);
    for (auto& g : flight_.groups) {
      if (g.count(from)) g.insert(to);
    }
  }

  // What is in flight on either way stays so behind it.
  void join(const Flight& other) {
    flight_.loads.insert(other.loads.begin(), other.loads.end());
    for (const auto& g : flight_.groups) flight_.open.insert(g.begin(), g.end());
    for (const auto& g : other.groups) flight_.open.insert(g.begin(), g.end());
    flight_.groups.clear();
    flight_.open.insert(other.open.begin(), other.open.end());
    flight_.accessed.insert(other.accessed.begin(), other.accessed.end());
  }
  void body(int depth) {
    const size_t narrow = narrow_.size(), wide = wide_.size();
    text_ += "  {\n";
    for (uint32_t i = 1 + pick(6); i > 0; --i) statement(depth + 1);
    text_ += "  }\n";
    narrow_.resize(narrow);
    wide_.resize(wide);
  }
  void branch(int depth) {
    if (depth >= 3) return;
    const bool outer = uniform_;
    uniform_ = outer && chance(50);
    const std::string label = number();
    if (uniform_)
      line("setp.lt.u32 %p9, %turn, " + std::to_string(pick(3)));
    else
      line("setp.lt.u32 %p9, " + source() + ", " + source());
    line("@%p9 bra ELSE" + label);
    const Flight before = flight_;
    body(depth);
    line("bra.uni BEHIND" + label);
    text_ += "ELSE" + label + ":\n";
    const Flight first = std::exchange(flight_, before);
    if (chance(60)) body(depth);
    text_ += "BEHIND" + label + ":\n";
    join(first);
    uniform_ = outer;
  }
  void loop(int depth) {
    if (depth >= 2 || !uniform_) return;
    const std::string label = number(), counter = "%turns" + label;
    text_ += "  .reg .b32 " + counter + ";\n";
    line("mov.b32 " + counter + ", " + std::to_string(1 + pick(3)));
    line("xor.b32 %turn, %turn, 1");
    for (const std::string& name : narrow_) flight_.accessed.insert(name);
    text_ += "AGAIN" + label + ":\n";
    const Flight before = flight_;
    body(depth);
    // What was not in flight when the turn began may be read when the next one begins.
    settle();
    line("sub.u32 " + counter + ", " + counter + ", 1");
    line("setp.ne.u32 %p9, " + counter + ", 0");
    line("@%p9 bra AGAIN" + label);
    join(before);
  }

  // ---- wgmma
  std::string braces(const Names& list) {
    std::string text = "{";
    for (const std::string& name : list) text += (text.size() > 1 ? ", " : "") + name;
    return text + "}";
  }
  void fence() {
    line("wgmma.fence.sync.aligned");
    flight_.accessed.clear();
  }
  void commit() {
    line("wgmma.commit_group.sync.aligned");
    flight_.groups.push_back(std::exchange(flight_.open, {}));
  }
  void wait(uint32_t n) {
    line("wgmma.wait_group.sync.aligned " + std::to_string(n));
    while (flight_.groups.size() > n) flight_.groups.erase(flight_.groups.begin());
  }
  void wgmma() {
    static const struct {
      const char* form;
      uint32_t registers;
    } forms[] = {{"m64n8k16.f32.f16.f16", 4}, {"m64n16k16.f32.f16.f16", 8}, {"m64n24k16.f32.f16.f16", 12},
                 {"m64n8k16.f16.f16.f16", 2}, {"m64n16k16.f16.f16.f16", 4}};
    const bool again = !newest_.empty() && chance(30) && std::all_of(newest_.begin(), newest_.end(), [&](const auto& n) {
                         return std::find(narrow_.begin(), narrow_.end(), n) != narrow_.end();
                       });
    const uint32_t form = again ? newest_form_ : pick(5);
    Names d, fresh_ones;
    bool overwrites = chance(60);
    if (again) {
      d = newest_;
      overwrites = false;
    }
    const bool slip = slips();
    while (d.size() < forms[form].registers) {
      const std::string name = chance(overwrites ? 70 : 5) || narrow_.size() < 30 ? fresh(false) : any(narrow_);
      if (std::find(d.begin(), d.end(), name) != d.end() || (flight_.has(name) && !slip)) continue;
      if (std::find(narrow_.begin(), narrow_.end(), name) == narrow_.end()) {
        fresh_ones.push_back(name);
        overwrites = true;
      }
      d.push_back(name);
    }
    std::string a = "%descriptor_a";
    Names inputs;
    if (chance(40)) {
      for (int i = 0; i < 4; ++i) inputs.push_back(any(narrow_));
      const auto bad = [&](const std::string& name) {
        return std::find(d.begin(), d.end(), name) != d.end() || (flight_.has(name) && !slip);
      };
      if (std::none_of(inputs.begin(), inputs.end(), bad))
        a = braces(inputs);
      else
        inputs.clear();
    }
    const auto accessed = [&](const std::string& name) { return flight_.accessed.count(name) != 0; };
    if ((std::any_of(d.begin(), d.end(), accessed) || std::any_of(inputs.begin(), inputs.end(), accessed)) && !slips()) fence();
    line("wgmma.mma_async.sync.aligned." + std::string(forms[form].form) + " " + braces(d) + ", " + a +
         ", %descriptor_b, " + (overwrites ? "0" : "1") + ", 1, 1, " + (inputs.empty() ? "0, 0" : "0"));
    narrow_.insert(narrow_.end(), fresh_ones.begin(), fresh_ones.end());
    flight_.open.insert(d.begin(), d.end());
    flight_.open.insert(inputs.begin(), inputs.end());
    newest_ = d;
    newest_form_ = form;
  }

  // ---- tensor memory
  void tmem_load() {
    const uint32_t n = 1u << pick(4);
    Names d;
    while (d.size() < n) {
      const std::string name = chance(60) ? fresh(false) : any(narrow_);
      if (std::find(d.begin(), d.end(), name) == d.end()) d.push_back(name);
    }
    line("tcgen05.ld.sync.aligned.32x32b.x" + std::to_string(n) + ".b32 " + braces(d) + ", [%tmem+" +
         std::to_string(pick(33 - n)) + "]");
    for (const std::string& name : d) {
      define(name);
      flight_.loads.insert(name);
    }
  }
  void tmem_wait() {
    line("tcgen05.wait::ld.sync.aligned");
    flight_.loads.clear();
  }
  void tmem_store() {
    line("tcgen05.st.sync.aligned.32x32b.x2.b32 [%tmem+" + std::to_string(pick(31)) + "], {" + source() + ", " + source() + "}");
    line("tcgen05.wait::st.sync.aligned");
  }

  // Nothing is in flight behind it.
  void settle() {
    if (target_ == Target::wgmma) {
      commit();
      wait(0);
    } else if (target_ == Target::tcgen05) {
      tmem_wait();
    }
  }

  void begin() {
    text_ = prologue() + "  .reg .b32 %turn, %word, %matrix, %tmem;\n  .reg .b64 %descriptor_a, %descriptor_b;\n";
    line("shl.b32 %r0, %tid32, 4");
    line("mov.u32 %word, smem");
    line("and.b32 %matrix, %r0, 112");
    line("add.u32 %matrix, %matrix, %word");
    line("add.u32 %matrix, %matrix, " + std::to_string(kA));
    line("add.u32 %word, %word, %r0");
    line("and.b32 %r1, %tid32, 7");
    line("mad.lo.u32 %r1, %r1, 0x04000400, 0x30003000");
    for (uint32_t at : {kA, kA + 2048, kB, kWords})
      line("st.shared.v4.b32 [%word+" + std::to_string(at) + "], {%r1, %r1, %r1, %r1}");
    line("add.u32 %word, %word, " + std::to_string(kWords));
    line("mov.b32 %turn, 1");
    line("fence.proxy.async.shared::cta");
    line("bar.sync 0");
    if (target_ == Target::wgmma) {
      line("mov.b64 %descriptor_a, " + descriptor(kA));
      line("mov.b64 %descriptor_b, " + descriptor(kB));
      fence();
    }
    if (target_ == Target::tcgen05) {
      text_ += allocate_tmem(0, 32);
      line("shl.b32 %tmem, %warp, 21");
      line("add.u32 %tmem, %tmem, %tm");
      line("tcgen05.st.sync.aligned.32x32b.x32.b32 [%tmem], " + registers_of(32));
      line("tcgen05.wait::st.sync.aligned");
    }
    for (int i = 0; i < 12; ++i) write("mad.lo.u32", "%tid32, " + std::to_string(pick(1 << 20)) + ", " + std::to_string(pick(~0u)));
    for (int i = 0; i < 2; ++i) write("mul.wide.u32", source() + ", " + source(), true);
  }
  static std::string registers_of(uint32_t count) {
    std::string text = "{";
    for (uint32_t i = 0; i < count; ++i) text += (i ? ", " : "") + std::string(i % 2 ? "%r0" : "%tid32");
    return text + "}";
  }
  void end() {
    settle();
    flight_ = {};
    line("mad.wide.u32 %out, %tid32, " + std::to_string(4 * kResults) + ", %out");
    for (uint32_t i = 0; i < kResults; ++i) line("st.global.u32 [%out+" + std::to_string(4 * i) + "], " + any(narrow_));
    if (target_ == Target::tcgen05) text_ += free_tmem(32);
    line("ret");
  }

  Random random_;
  Target target_;
  std::string text_;
  Names narrow_, wide_;
  Flight flight_;
  bool uniform_ = true;
  uint32_t next_ = 0;
  Names newest_;  // accumulators of the newest wgmma
  uint32_t newest_form_ = 0;
};

struct Outcome {
  std::string fault;
  std::vector<uint32_t> results;
  bool operator==(const Outcome&) const = default;
};

Outcome run(Kernel& kernel, uint64_t out, Model model, uint64_t seed) {
  Device& device = kernel.device();
  device.set_model(model);
  device.set_adversarial(seed);
  std::memset(device.memory().at(out, 4 * kThreads * kResults), 0xEE, 4 * kThreads * kResults);
  try {
    kernel.run("kernel", {{1, 1, 1}, {kThreads, 1, 1}, 32768}, out);
  } catch (const Fault& fault) {
    return {fault.what(), {}};
  }
  return {{}, kernel.read<uint32_t>(out, kThreads * kResults)};
}

// Programs that ran to their end in all their runs, and those that faulted in one.
struct Tally {
  uint32_t right = 0, faulty = 0;
};

Tally sweep(Target target, uint64_t programs) {
  Tally tally;
  for (uint64_t number = 1; number <= programs; ++number) {
    const std::string ptx = Writer(number * 3 + uint64_t(target), target).module();
    INFO("program " << number << "\n" << ptx);
    Kernel shared(ptx, 1, 4, 1 << 20), own(ptx, 1, 4, 1 << 20, Rows::own);
    const uint64_t shared_out = shared.buffer<uint32_t>(kThreads * kResults), own_out = own.buffer<uint32_t>(kThreads * kResults);
    bool faulty = false;
    for (uint64_t seed : {uint64_t(0), number, number + programs}) {
      const Model model = seed % 2 ? Model::silicon : Model::isa;
      const Outcome expected = run(own, own_out, model, seed), outcome = run(shared, shared_out, model, seed);
      INFO("seed " << seed << "; with rows of their own: " << expected.fault << "; with shared ones: " << outcome.fault);
      REQUIRE(outcome.fault == expected.fault);
      REQUIRE((outcome.results == expected.results));
      faulty |= !expected.fault.empty();
    }
    ++(faulty ? tally.faulty : tally.right);
  }
  return tally;
}

}  // namespace

namespace {

// A warpgroup with operands of ones: body() gives every thread one word to store, in %r9.
std::vector<uint32_t> run_wgmma(const std::string& body) {
  std::string ptx = entry_of(".param .u64 out", prologue() + R"(
  .reg .b32 %x<4>, %y<8>;
  shl.b32 %r0, %tid32, 4;
  mov.u32 %r1, smem;
  add.u32 %r0, %r0, %r1;
  mov.b32 %r1, 0x3c003c00;
  st.shared.v4.b32 [%r0+1024], {%r1, %r1, %r1, %r1};
  st.shared.v4.b32 [%r0+8192], {%r1, %r1, %r1, %r1};
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.gt.u32 %p5, %tid32, 1000;
  mov.b64 %d5, )" + descriptor(kA) + ";\n  mov.b64 %d6, " + descriptor(kB) + ";\n  wgmma.fence.sync.aligned;\n" + body + R"(
  mad.wide.u32 %out, %tid32, 4, %out;
  st.global.u32 [%out], %r9;
  ret;
)", kThreads);
  ptx.replace(ptx.find("sm_100a"), 7, "sm_90a");
  Kernel kernel(ptx);
  const uint64_t out = kernel.buffer<uint32_t>(kThreads);
  kernel.run("kernel", {{1, 1, 1}, {kThreads, 1, 1}, 32768}, out);
  return kernel.read<uint32_t>(out, kThreads);
}
const std::string kX = "{%x0, %x1, %x2, %x3}, %d5, %d6, 0, 1, 1, 0, 0;\n",
                  kY = "{%y0, %y1, %y2, %y3, %y4, %y5, %y6, %y7}, %d5, %d6, 0, 1, 1, 0, 0;\n";
const std::string kMmaX = "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " + kX,
                  kMmaY = "  wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " + kY,
                  kEndMma = "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";

}  // namespace

TEST_CASE("rows: accumulators that nobody reads are not those of live registers") {
  std::string body = kMmaY + "  wgmma.commit_group.sync.aligned;\n";
  for (int i = 10; i < 26; ++i) body += "  mad.lo.u32 %r" + std::to_string(i) + ", %tid32, " + std::to_string(i) + ", 1;\n";
  body += "  nanosleep.u32 1000;\n  wgmma.wait_group.sync.aligned 0;\n  cvt.rzi.u32.f32 %r9, %y0;\n";
  for (int i = 10; i < 26; ++i) body += "  add.u32 %r9, %r9, %r" + std::to_string(i) + ";\n";
  std::vector<uint32_t> expected;
  for (uint32_t thread = 0; thread < kThreads; ++thread) expected.push_back(16 + 16 + thread * (10 + 25) * 8);
  CHECK((run_wgmma(body) == expected));
}

TEST_CASE("rows: accumulators that nobody reads are not those of another wgmma") {
  const std::vector<uint32_t> results = run_wgmma(kMmaX + kMmaY + kEndMma + "  add.f32 %x0, %x0, %y0;\n  cvt.rzi.u32.f32 %r9, %x0;\n");
  CHECK(std::count(results.begin(), results.end(), 32) == kThreads);
}

// Of two registers that some path uses without a wgmma.fence, one is read; the wgmma that follows has the other.
TEST_CASE("rows: an access to a register that has died asks no other for a wgmma.fence") {
  const std::vector<uint32_t> results =
      run_wgmma(kMmaX + kEndMma + "  add.f32 %r10, %x0, %x1;\n  cvt.rzi.u32.f32 %r9, %r10;\n  @!%p5 bra BEHIND;\n" + kMmaX + kEndMma +
                "  add.f32 %r10, %x0, %x3;\n  cvt.rzi.u32.f32 %r9, %r10;\nBEHIND:\n  @%p5 mov.b32 %y0, %r9;\n  @%p5 add.f32 %y1, %y0, %y0;\n" +
                kMmaY + kEndMma + "  cvt.rzi.u32.f32 %r10, %y7;\n  add.u32 %r9, %r9, %r10;\n");
  CHECK(std::count(results.begin(), results.end(), 48) == kThreads);
}

TEST_CASE("rows: random programs of threads alone") {
  const Tally tally = sweep(Target::threads, 200);
  CHECK(tally.faulty == 0);
}

TEST_CASE("rows: random programs with wgmma") {
  const Tally tally = sweep(Target::wgmma, 400);
  INFO(tally.right << " right, " << tally.faulty << " faulty");
  CHECK(tally.right >= 300);
  CHECK(tally.faulty >= 20);
}

TEST_CASE("rows: random programs with tcgen05.ld") {
  const Tally tally = sweep(Target::tcgen05, 300);
  INFO(tally.right << " right, " << tally.faulty << " faulty");
  CHECK(tally.right >= 240);
  CHECK(tally.faulty >= 8);
}

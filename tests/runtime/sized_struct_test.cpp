// SPDX-License-Identifier: Apache-2.0
// Params structs that are shorter or longer than the library's, of callers with another fa4.h. Each lies at the end of what may be
// read, so that a byte too many is a fault.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "fake.h"
#include "problems.h"

using fa4::Problem;
using fa4::test::create_params;
using fa4::test::Fake;
using fa4::test::same_launch;
using fa4::test::small_problem;

namespace {

constexpr uint32_t kFirst = 296, kOwn = sizeof(fa4_forward_params), kMost = 4096;

// So many bytes with a page behind them that cannot be read.
class Edge {
 public:
  Edge() : pages_(static_cast<char*>(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(pages_ != MAP_FAILED);
    REQUIRE(mprotect(pages_ + 2 * kPage, kPage, PROT_NONE) == 0);
  }
  ~Edge() { munmap(pages_, 3 * kPage); }
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;

  // The first `bytes` of the struct, or all of it with zeros behind; struct_size says so unless `said` does.
  template <typename Params>
  const Params* hold(const Params& params, uint32_t bytes) {
    return hold(params, bytes, bytes);
  }
  template <typename Params>
  const Params* hold(const Params& params, uint32_t bytes, uint32_t said) {
    char* const begin = pages_ + 2 * kPage - bytes;
    std::memset(begin, 0, bytes);
    std::memcpy(begin, &params, std::min<size_t>(bytes, sizeof params));
    std::memcpy(begin, &said, sizeof said);
    return reinterpret_cast<const Params*>(begin);
  }
  // Counted from the struct's begin.
  void set(uint32_t bytes, uint32_t offset, unsigned char value) {
    pages_[2 * kPage - bytes + offset] = static_cast<char>(value);
  }

 private:
  static constexpr size_t kPage = 4096;
  char* pages_;
};

// What a problem is without all that begins at `bytes`.
Problem cut(const Problem& problem, uint32_t bytes) {
  Problem result = problem;
  if (bytes < kOwn) std::memset(reinterpret_cast<char*>(static_cast<fa4_forward_params*>(&result)) + bytes, 0, kOwn - bytes);
  return result;
}

struct Answer {
  fa4_status status;
  std::string sentence;  // "" of a success
  bool operator==(const Answer&) const = default;
};

Answer answer(fa4_status status) {
  return {status, status == FA4_OK ? "" : fa4_last_error()};
}

// What every function that takes a problem says, which must be the same.
Answer ask(const fa4_context* context, const fa4_forward_params* params) {
  const Answer forward = answer(fa4_forward(context, params));
  uint64_t size = 1;
  for (const fa4_context* who : {context, static_cast<const fa4_context*>(nullptr)}) {
    CHECK((answer(fa4_supported(who, params)) == forward));
    CHECK((answer(fa4_workspace_size(who, params, &size)) == forward));
    CHECK(size == 0);
  }
  return forward;
}

}  // namespace

TEST_CASE("a shorter struct is read as if zeros followed, and no further", "[runtime]") {
  Fake fake;
  const fa4::Context context(FA4_FAKE_DRIVER);
  Edge edge;
  Problem problem = small_problem();
  problem.set_softmax_scale(0.5).set_causal().set_max_ctas(7).set_stream(reinterpret_cast<void*>(0x77));
  int launched = 0;
  for (uint32_t bytes = 8; bytes <= kOwn; ++bytes) {
    const Problem zeros = cut(problem, bytes);
    fake.driver->launch_count = 0;
    const Answer expected = ask(context.get(), &zeros);
    const uint32_t launches = fake.driver->launch_count;
    INFO(bytes << " bytes: " << expected.sentence);
    CHECK((ask(context.get(), edge.hold<fa4_forward_params>(problem, bytes)) == expected));
    REQUIRE(fake.driver->launch_count == 2 * launches);
    if (launches == 1) CHECK(same_launch(fake.driver->launches[1], zeros, *fake.driver));
    launched += static_cast<int>(launches);
  }
  CHECK(launched > int(kOwn - kFirst));
  CHECK(ask(context.get(), edge.hold<fa4_forward_params>(problem, 8)).sentence == "q_heads is 0; 1 to 2147483647 are accepted");
}

TEST_CASE("a longer struct is taken if what is not known of it is zero", "[runtime]") {
  Fake fake;
  const fa4::Context context(FA4_FAKE_DRIVER);
  Edge edge;
  const Problem problem = small_problem();
  for (uint32_t bytes = kOwn + 1; bytes <= kMost; bytes += 1 + bytes / 16) {
    const uint32_t before = fake.driver->launch_count;
    const fa4_forward_params* longer = edge.hold<fa4_forward_params>(problem, bytes);
    CHECK((ask(context.get(), longer) == Answer{FA4_OK, ""}));
    REQUIRE(fake.driver->launch_count == before + 1);
    CHECK(same_launch(fake.driver->launches[before], problem, *fake.driver));
    for (const uint32_t offset : {kOwn, (kOwn + bytes) / 2, bytes - 1}) {
      edge.hold<fa4_forward_params>(problem, bytes);
      edge.set(bytes, offset, 200);
      CHECK((ask(context.get(), longer) ==
             Answer{FA4_ERROR_VERSION, "fa4_forward_params has struct_size " + std::to_string(bytes) + ", and its byte at offset " +
                                           std::to_string(offset) +
                                           " is 200: a field that this library does not have; it knows the first 408 bytes, and takes "
                                           "more if they are zero"}));
    }
    CHECK(fake.driver->launch_count == before + 1);
  }
}

TEST_CASE("a struct of no possible size, or of another version, is refused by its first two fields", "[runtime]") {
  Fake fake;
  const fa4::Context context(FA4_FAKE_DRIVER);
  Edge edge;
  fake.driver->calls = 0;
  for (const uint32_t said : {0u, 1u, 4u, 7u, 4097u, 65536u, ~0u}) {
    CHECK((ask(context.get(), edge.hold<fa4_forward_params>(small_problem(), 8, said)) ==
           Answer{FA4_ERROR_VERSION, "fa4_forward_params has struct_size " + std::to_string(said) +
                                         "; 8 to 4096 are accepted, and the struct of this library has 408 bytes"}));
  }
  for (const uint32_t version : {0u, 2u, ~0u}) {
    Problem problem = small_problem();
    problem.version = version;
    CHECK((ask(context.get(), edge.hold<fa4_forward_params>(problem, 8)) ==
           Answer{FA4_ERROR_VERSION, "fa4_forward_params has version " + std::to_string(version) + "; this library takes version 1"}));
  }
  CHECK(fake.driver->calls == 0);
}

TEST_CASE("the params of fa4_create have sizes by the same rule", "[runtime]") {
  Fake fake;
  Edge edge;
  const fa4_create_params params = create_params();
  const auto create = [&](const fa4_create_params* some) {
    auto* context = reinterpret_cast<fa4_context*>(1);
    const Answer got = answer(fa4_create(some, &context));
    CHECK((context != nullptr) == (got.status == FA4_OK));
    fa4_destroy(context);
    return got;
  };
  for (const uint32_t bytes : {16u, 20u, 24u, 25u, 55u, 56u, 57u, 64u, 1000u, 4096u})
    CHECK((create(edge.hold(params, bytes)) == Answer{FA4_OK, ""}));
  CHECK(fake.driver->loads == 10);
  fake.driver->calls = 0;
  for (const uint32_t offset : {56u, 63u}) {
    const fa4_create_params* longer = edge.hold(params, 64);
    edge.set(64, offset, 1);
    CHECK((create(longer) == Answer{FA4_ERROR_VERSION, "fa4_create_params has struct_size 64, and its byte at offset " +
                                                           std::to_string(offset) +
                                                           " is 1: a field that this library does not have; it knows the first 56 "
                                                           "bytes, and takes more if they are zero"}));
  }
  for (const uint32_t said : {0u, 7u, 4097u, ~0u})
    CHECK((create(edge.hold(params, 8, said)) ==
           Answer{FA4_ERROR_VERSION, "fa4_create_params has struct_size " + std::to_string(said) +
                                         "; 8 to 4096 are accepted, and the struct of this library has 56 bytes"}));
  fa4_create_params other = params;
  other.version = 0;
  CHECK((create(edge.hold(other, 8)) == Answer{FA4_ERROR_VERSION, "fa4_create_params has version 0; this library takes version 1"}));
  for (uint32_t i = 0; i < 4; ++i) {
    other = params;
    other.reserved[i] = uint64_t{1} << 63;
    CHECK((create(edge.hold(other, sizeof other)) ==
           Answer{FA4_ERROR_INVALID_ARGUMENT, "reserved[" + std::to_string(i) + "] is 9223372036854775808; it must be 0"}));
  }
  CHECK(fake.driver->calls == 0);
}

TEST_CASE("what is not built is refused by every function and launches nothing", "[runtime]") {
  Fake fake;
  const fa4::Context context(FA4_FAKE_DRIVER);
  fake.driver->calls = 0;
  const auto refused = [&](const Problem& problem) {
    const Answer got = ask(context.get(), &problem);
    CHECK(got.status == FA4_ERROR_UNSUPPORTED);
    return got.sentence.substr(0, got.sentence.find(' '));
  };
  const uint64_t array = fa4::test::kArrayAddress;
  const Problem plain = small_problem();
  CHECK(refused(Problem(plain).set_pages(array, 13, 16, 30)) == "block_table");
  CHECK(refused(Problem(plain).set_softcap(20).set_alibi_slopes(array, 8)) == "softcap");
  CHECK(refused(Problem(plain).set_num_splits(4)) == "num_splits");
  CHECK(refused(Problem(FA4_FP16, {.seq_q = 8, .seq_kv = 8, .head_dim = 128, .head_dim_v = 264})) == "head_dim_v");
  CHECK(fake.driver->calls == 0);
  CHECK(fake.driver->launch_count == 0);
}

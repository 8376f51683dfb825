// SPDX-License-Identifier: Apache-2.0
// The C boundary: nothing throws across it, every failure leaves its sentence in the calling thread's buffer.
#include <memory>
#include <new>

#include "context.h"
#include "fa4/fa4.h"
#include "plan.h"
#include "problem.h"
#include "sized_struct.h"

struct fa4_context : fa4::Context {};

namespace {

// Touched by failures alone: a successful call does not make the loader allocate a thread's copy.
thread_local fa4::Message last_error;

fa4_status null_argument(const char* name, const char* wanted) {
  return last_error.fail(FA4_ERROR_INVALID_ARGUMENT, "%s is null; %s is needed", name, wanted);
}

fa4_status report(fa4_status status, const fa4::Message& message) {
  if (status != FA4_OK) last_error = message;
  return status;
}

}  // namespace

fa4_status fa4_create(const fa4_create_params* params, fa4_context** context) {
  if (context == nullptr) return null_argument("context", "the address of an fa4_context*");
  *context = nullptr;
  if (params == nullptr) return null_argument("params", "a fa4_create_params");
  fa4::Message message;
  fa4_status status;
  try {
    fa4_create_params own;
    status = fa4::read_params(params, own, message);
    if (status == FA4_OK) {
      auto opened = std::make_unique<fa4_context>();
      status = opened->open(own, message);
      if (status == FA4_OK) *context = opened.release();
    }
  } catch (const std::bad_alloc&) {
    status = message.fail(FA4_ERROR_OUT_OF_MEMORY, "no host memory is left for the context");
  }
  return report(status, message);
}

fa4_status fa4_supported(const fa4_context* context, const fa4_forward_params* params) {
  if (params == nullptr) return null_argument("params", "a fa4_forward_params");
  fa4::Message message;
  fa4::CheckedProblem checked;
  fa4_forward_params own;
  fa4_status status = fa4::read_params(params, own, message);
  if (status != FA4_OK) return report(status, message);
  if (context != nullptr) return report(fa4::check_problem(own, context->kernels(), checked, message), message);
  for (const fa4::KernelList* kernels : fa4::kArchitectures) {
    status = fa4::check_problem(own, *kernels, checked, message);
    if (status == FA4_OK) break;
  }
  return report(status, message);
}

fa4_status fa4_workspace_size(const fa4_context* context, const fa4_forward_params* params, uint64_t* size) {
  if (size == nullptr) return null_argument("size", "the address of a uint64_t");
  *size = 0;
  const fa4_status status = fa4_supported(context, params);
  if (status != FA4_OK) return status;
  fa4::Message message;
  fa4_forward_params own;
  fa4::read_params(params, own, message);  // as it did a moment ago
  *size = fa4::workspace_bytes(own);
  return FA4_OK;
}

fa4_status fa4_forward(const fa4_context* context, const fa4_forward_params* params) {
  if (context == nullptr) return null_argument("context", "a context from fa4_create");
  if (params == nullptr) return null_argument("params", "a fa4_forward_params");
  fa4::Message message;
  fa4_forward_params own;
  fa4_status status = fa4::read_params(params, own, message);
  if (status == FA4_OK) status = context->forward(own, message);
  return report(status, message);
}

void fa4_destroy(fa4_context* context) {
  delete context;
}

const char* fa4_last_error(void) {
  return last_error.text();
}

const char* fa4_status_name(fa4_status status) {
  switch (status) {
    case FA4_OK:
      return "FA4_OK";
    case FA4_ERROR_INVALID_ARGUMENT:
      return "FA4_ERROR_INVALID_ARGUMENT";
    case FA4_ERROR_UNSUPPORTED:
      return "FA4_ERROR_UNSUPPORTED";
    case FA4_ERROR_VERSION:
      return "FA4_ERROR_VERSION";
    case FA4_ERROR_NO_DRIVER:
      return "FA4_ERROR_NO_DRIVER";
    case FA4_ERROR_NO_DEVICE:
      return "FA4_ERROR_NO_DEVICE";
    case FA4_ERROR_ARCHITECTURE:
      return "FA4_ERROR_ARCHITECTURE";
    case FA4_ERROR_DRIVER:
      return "FA4_ERROR_DRIVER";
    case FA4_ERROR_OUT_OF_MEMORY:
      return "FA4_ERROR_OUT_OF_MEMORY";
  }
  return "an unknown fa4_status";
}

uint32_t fa4_version(void) {
  return FA4_VERSION;
}

// SPDX-License-Identifier: Apache-2.0
// Memory, time and properties of a device, over the runtime's driver table.
#include "gpu.h"

#include <stdexcept>
#include <type_traits>

namespace fa4::support {
namespace {

void open(fa4::HostDriver& driver, const std::string& library) {
  fa4::Message message;
  if (driver.open(library.c_str(), message) != FA4_OK) throw std::runtime_error(message.text());
}

void check_call(const fa4::HostDriver& driver, CUresult result, const char* function) {
  fa4::Message message;
  if (driver.check(result, function, message) != FA4_OK) throw std::runtime_error(message.text());
}

Gpu::Properties properties_of(const fa4::HostDriver& driver, CUdevice device) {
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    check_call(driver, driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  };
  Gpu::Properties result;
  char name[256] = {};
  check_call(driver, driver.cuDeviceGetName(name, int(sizeof name), device), "cuDeviceGetName");
  result.name = name;
  result.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  result.minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  result.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  size_t bytes = 0;
  check_call(driver, driver.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem");
  result.memory_bytes = bytes;
  return result;
}

}  // namespace

std::vector<Gpu::Properties> Gpu::list(const std::string& library, int* driver_version) {
  fa4::HostDriver driver;
  open(driver, library);
  check_call(driver, driver.cuInit(0), "cuInit");
  check_call(driver, driver.cuDriverGetVersion(driver_version), "cuDriverGetVersion");
  int count = 0;
  check_call(driver, driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::vector<Properties> result;
  for (int i = 0; i < count; ++i) {
    CUdevice device;
    check_call(driver, driver.cuDeviceGet(&device, i), "cuDeviceGet");
    result.push_back(properties_of(driver, device));
  }
  return result;
}

Gpu::Gpu(const std::string& library, int ordinal) : library_(library) {
  open(driver_, library);
  check(driver_.cuInit(0), "cuInit");
  check(driver_.cuDeviceGet(&device_, ordinal), "cuDeviceGet");
  properties_ = properties_of(driver_, device_);
  fa4::Message message;
  const auto find = [&](auto& member, const char* name) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(driver_.resolve(name, message));
    return member != nullptr;
  };
  // The first name tells a simulated GPU; the others must then be there too.
  if (find(simulator_.configure, "fa4sim_configure") &&
      !(find(simulator_.get_config, "fa4sim_get_config") &&
        find(simulator_.get_counters, "fa4sim_get_counters") &&
        find(simulator_.get_cta_cycles, "fa4sim_get_cta_cycles") &&
        find(simulator_.trace_cta, "fa4sim_trace_cta") && find(simulator_.get_trace, "fa4sim_get_trace") &&
        find(simulator_.get_source_instructions, "fa4sim_get_source_instructions") &&
        find(simulator_.set_progress, "fa4sim_set_progress") &&
        find(simulator_.last_error, "fa4sim_last_error") && find(simulator_.check, "fa4sim_check") &&
        find(simulator_.count_findings, "fa4sim_count_findings") &&
        find(simulator_.take_findings, "fa4sim_take_findings") &&
        find(simulator_.set_adversarial, "fa4sim_set_adversarial") &&
        find(simulator_.set_model, "fa4sim_set_model") && find(simulator_.axioms, "fa4sim_axioms") &&
        find(simulator_.record, "fa4sim_record") && find(simulator_.take_sync, "fa4sim_take_sync")))
    throw std::runtime_error(message.text());
  retain();
}

Gpu::~Gpu() {
  if (begin_) driver_.cuEventDestroy(begin_);
  if (end_) driver_.cuEventDestroy(end_);
  driver_.cuCtxSetCurrent(nullptr);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

void Gpu::retain() {
  CUcontext context = nullptr;
  check(driver_.cuDevicePrimaryCtxRetain(&context, device_), "cuDevicePrimaryCtxRetain");
  check(driver_.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

void Gpu::reset() {
  begin_ = end_ = nullptr;  // they go down with the context
  driver_.cuCtxSetCurrent(nullptr);
  check(driver_.cuDevicePrimaryCtxRelease(device_), "cuDevicePrimaryCtxRelease");
  retain();
}

void Gpu::check(CUresult result, const char* function) const {
  check_call(driver_, result, function);
}

CUdeviceptr Gpu::allocate(uint64_t bytes) {
  CUdeviceptr address = 0;
  const CUresult result = driver_.cuMemAlloc(&address, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw std::runtime_error("the device has no room for " + std::to_string(bytes) + " bytes (" +
                             properties_.name + ", " + std::to_string(properties_.memory_bytes >> 20) +
                             " MiB in all)");
  check(result, "cuMemAlloc");
  return address;
}
void Gpu::release(CUdeviceptr address) noexcept {
  driver_.cuMemFree(address);
}
void Gpu::upload(CUdeviceptr to, const void* from, uint64_t bytes) {
  if (bytes) check(driver_.cuMemcpyHtoD(to, from, bytes), "cuMemcpyHtoD");
}
void Gpu::download(void* to, CUdeviceptr from, uint64_t bytes) {
  if (bytes) check(driver_.cuMemcpyDtoH(to, from, bytes), "cuMemcpyDtoH");
}
void Gpu::synchronize() {
  check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
}

void Gpu::start_timer() {
  if (!begin_) check(driver_.cuEventCreate(&begin_, CU_EVENT_DEFAULT), "cuEventCreate");
  if (!end_) check(driver_.cuEventCreate(&end_, CU_EVENT_DEFAULT), "cuEventCreate");
  check(driver_.cuEventRecord(begin_, nullptr), "cuEventRecord");
}
double Gpu::stop_timer() {
  check(driver_.cuEventRecord(end_, nullptr), "cuEventRecord");
  check(driver_.cuEventSynchronize(end_), "cuEventSynchronize");
  float milliseconds = 0;
  check(driver_.cuEventElapsedTime(&milliseconds, begin_, end_), "cuEventElapsedTime");
  return double(milliseconds) * 1e-3;
}

}  // namespace fa4::support

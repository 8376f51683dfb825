// SPDX-License-Identifier: Apache-2.0
// What environment variables ask of the simulated GPU, for programs that do not know fa4sim.h, and what it
// then says on stderr: failed calls, findings of the checker after each launch, and their sum when the
// program ends.
#pragma once

#include <string>

#include "state.h"

namespace fa4::sim::driver {

// Reads FA4SIM_GPU, FA4SIM_SMS, FA4SIM_HOST_THREADS and FA4SIM_BUDGET into *config and *gpu.
CUresult configure_from_environment(DeviceConfig* config, const GpuKind** gpu);

// Reads FA4SIM_CHECK, FA4SIM_SEED, FA4SIM_MODEL, FA4SIM_RECORD and FA4SIM_LOG and does what they say. The device is there.
CUresult watch_from_environment(State& s);

// From the next launch on, or from the next on no more. state().device_lock is held.
void set_checking(State& s, bool on);

// With FA4SIM_RECORD: writes what the recorded CTA of a launch that has ended did. device_lock is held.
void write_record(State& s, const Launch& launch);

// Moves what the checkers have found into State::findings; with FA4SIM_CHECK, tells what is new. device_lock
// is held.
void gather_findings(State& s);

// With FA4SIM_CHECK: counts a launch that has ended, with the report of its fault or "", and tells.
void tell_launch(State& s, const std::string& fault);

}  // namespace fa4::sim::driver

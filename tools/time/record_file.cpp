// SPDX-License-Identifier: Apache-2.0
#include "record_file.h"

#include <fstream>
#include <sstream>

#include "sass.h"

namespace fa4::time {

std::vector<RecordedLaunch> read_record_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path + " cannot be read");
  file.seekg(0, std::ios::end);
  const auto size = uint64_t(file.tellg());
  file.seekg(0);
  std::vector<RecordedLaunch> launches;
  for (std::string line; std::getline(file, line);) {
    std::istringstream header(line);
    std::string magic;
    uint64_t version = 0, grid[3] = {}, records = 0, ptx_bytes = 0;
    RecordedLaunch launch;
    header >> magic >> version >> launch.cta >> grid[0] >> grid[1] >> grid[2] >> launch.threads >> records >>
        ptx_bytes >> launch.kernel;
    if (!header || magic != "fa4sim-record" || version != 2)
      throw Error(path +
                  " is no record of launches: \"fa4sim-record 2 ...\" opens one, as the simulated GPU writes "
                  "it with FA4SIM_RECORD");
    launch.ctas = grid[0] * grid[1] * grid[2];
    const uint64_t left = size - uint64_t(file.tellg());
    if (ptx_bytes > left || records > (left - ptx_bytes) / sizeof(fa4sim_sync))
      throw Error(path + " is cut short in the launch of " + launch.kernel);
    launch.ptx.resize(ptx_bytes);
    file.read(launch.ptx.data(), std::streamsize(ptx_bytes));
    launch.records.resize(records);
    file.read(reinterpret_cast<char*>(launch.records.data()), std::streamsize(records * sizeof(fa4sim_sync)));
    if (!file) throw Error(path + " cannot be read to its end");
    launches.push_back(std::move(launch));
  }
  if (launches.empty()) throw Error(path + " has no launch in it");
  return launches;
}

}  // namespace fa4::time

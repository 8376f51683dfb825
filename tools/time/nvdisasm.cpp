// SPDX-License-Identifier: Apache-2.0
#include "nvdisasm.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "sass.h"

extern char** environ;

namespace fa4::time {

namespace {

bool executable(const std::string& path) {
  return access(path.c_str(), X_OK) == 0;
}

// A file that is gone when this is.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder && *folder ? folder : "/tmp") + "/fa4-XXXXXX";
    descriptor_ = mkstemp(path_.data());
    if (descriptor_ < 0) throw Error("no temporary file can be made at " + path_);
  }
  ~TemporaryFile() {
    close(descriptor_);
    unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  void write(std::span<const char> bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::write(descriptor_, bytes.data() + at, bytes.size() - at);
      if (n <= 0) throw Error("the temporary file " + path_ + " cannot be written");
      at += size_t(n);
    }
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace

std::string find_nvdisasm(const std::vector<std::string>& places) {
  if (const char* named = std::getenv("FA4_NVDISASM"); named && *named) return executable(named) ? named : "";
  for (const std::string& place : places)
    if (executable(place + "/nvdisasm")) return place + "/nvdisasm";
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string candidate = rest.substr(0, colon) + "/nvdisasm";
    if (executable(candidate)) return candidate;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

const char* how_to_get_nvdisasm() {
  return "it reads machine code with NVIDIA's nvdisasm, and there is none on PATH: it comes with the CUDA "
         "toolkit, and with "
         "\"pip install nvidia-cuda-nvdisasm\"; FA4_NVDISASM may name one";
}

std::string disassemble(const std::string& nvdisasm, std::span<const char> cubin) {
  TemporaryFile file;
  file.write(cubin);
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) throw Error("no pipe to nvdisasm can be made");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  std::string arguments[] = {nvdisasm, "-c", "-hex", file.path()};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), arguments[3].data(),
                  nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, nvdisasm.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string text;
  if (!failed) {
    char buffer[1 << 16];
    for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  }
  close(pipe_ends[0]);
  int status = 0;
  if (failed || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(nvdisasm + " could not disassemble the cubin");
  return text;
}

}  // namespace fa4::time

// SPDX-License-Identifier: Apache-2.0
#include "isolated.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace fa4::conformance {
namespace {

enum class Kind : uint32_t { result, broken, failure };  // failure: the worker could not be made

struct Header {
  uint64_t job;
  uint64_t bytes;
  Kind kind;
};

void write_all(int fd, const void* data, size_t bytes) {
  for (const char* at = static_cast<const char*>(data); bytes;) {
    const ssize_t n = ::write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    at += n;
    bytes -= size_t(n);
  }
}
void send(int fd, size_t job, Kind kind, const std::string& text) {
  const Header header{job, text.size(), kind};
  write_all(fd, &header, sizeof header);
  write_all(fd, text.data(), text.size());
}

[[noreturn]] void child(int fd, size_t first, size_t count,
                        const std::function<std::unique_ptr<Worker>()>& make) {
  // What the parent does about fatal signals is not for the child.
  for (int number : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTERM, SIGINT}) ::signal(number, SIG_DFL);
  std::unique_ptr<Worker> worker;
  try {
    worker = make();
  } catch (const std::exception& error) {
    send(fd, first, Kind::failure, error.what());
    _exit(0);
  }
  for (size_t job = first; job < count; ++job) {
    bool broken = false;
    std::string result;
    try {
      result = worker->work(job, &broken);
    } catch (const std::exception& error) {
      send(fd, job, Kind::failure, error.what());
      _exit(0);
    }
    send(fd, job, broken ? Kind::broken : Kind::result, result);
    if (broken) break;
  }
  _exit(0);  // without the destructors of a driver that may be broken
}

// False at the end of the file or when the time is over.
bool read_all(int fd, void* data, size_t bytes, int seconds, bool* too_late) {
  for (char* at = static_cast<char*>(data); bytes;) {
    pollfd p{fd, POLLIN, 0};
    const int ready = ::poll(&p, 1, seconds * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return *too_late = true, false;
    const ssize_t n = ::read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= size_t(n);
  }
  return true;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return std::string("the process ended by signal ") + std::to_string(WTERMSIG(status)) + ", " +
           strsignal(WTERMSIG(status));
  return "the process ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void run_isolated(size_t count, int seconds, const std::function<std::unique_ptr<Worker>()>& make,
                  const std::function<void(size_t job, const JobEnd& end)>& done) {
  for (size_t next = 0; next < count;) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe: " + std::string(std::strerror(errno)));
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("no child process: " + std::string(std::strerror(errno)));
    if (pid == 0) {
      ::close(ends[0]);
      child(ends[1], next, count, make);
    }
    ::close(ends[1]);
    std::string failure;
    bool too_late = false, finished = false;
    while (next < count && !finished) {
      Header header;
      JobEnd end;
      if (!read_all(ends[0], &header, sizeof header, seconds, &too_late)) break;
      end.result.resize(header.bytes);
      if (!read_all(ends[0], end.result.data(), header.bytes, seconds, &too_late)) break;
      if (header.kind == Kind::failure) {
        failure = end.result;
        break;
      }
      done(next++, end);
      finished = header.kind == Kind::broken;
    }
    ::close(ends[0]);
    if (too_late) ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!failure.empty()) throw std::runtime_error(failure);
    if (next < count && !finished) {
      done(next++,
           {true, too_late ? "no answer within " + std::to_string(seconds) + " s" : how_it_ended(status)});
    }
  }
}

}  // namespace fa4::conformance

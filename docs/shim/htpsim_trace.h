// Records calls, grants, submits and returns of graphExecute, for `htpsim check` and `htpsim explain-policy`.
// C++17, standard library only, any number of threads. Set HTPSIM_TRACE to the file to write; without it nothing is done.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

namespace htpsim {
class Trace {
 public:
  static Trace& get() { static Trace trace; return trace; }

  // Before the guard is asked; `handle` is null where the thread carries none. Returns the number to mark the rest with.
  long long call(const char* handle, int weight, const char* context, const char* graph, const char* path = "genie") {
    if (!out_.is_open()) return -1;
    std::ostringstream facts;
    facts << ",\"thread\":\"" << std::this_thread::get_id() << "\",\"process\":" << process_ << ",\"context\":"
          << std::quoted(context) << ",\"graph\":" << std::quoted(graph) << ",\"path\":" << std::quoted(path);
    if (handle) facts << ",\"handle\":" << std::quoted(handle) << ",\"weight\":" << weight;
    const long long id = process_ * 1000000000LL + calls_++;
    write("call", id, facts.str());
    return id;
  }

  // "grant" right after the guard was acquired, "submit" right before graphExecute, "return" before the guard is released.
  void mark(const char* event, long long id) { if (out_.is_open()) write(event, id, ""); }

 private:
  Trace() {
    if (const char* process = std::getenv("HTPSIM_TRACE_PROCESS")) process_ = std::atoll(process);
    if (const char* path = std::getenv("HTPSIM_TRACE")) out_.open(path);
    if (out_.is_open()) out_ << "{\"htpsim_trace\":1,\"source\":\"htpsim_trace.h\"}\n";
  }

  void write(const char* event, long long id, const std::string& facts) {
    std::lock_guard<std::mutex> lock(mutex_);  // the clock is read under the lock, so lines are in order of time
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    out_ << "{\"ev\":\"" << event << "\",\"t\":" << std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()
         << ",\"id\":" << id << facts << "}\n";
  }

  std::mutex mutex_;
  std::ofstream out_;
  std::atomic<long long> calls_{0};
  long long process_ = 0;
};
}  // namespace htpsim

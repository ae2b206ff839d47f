// Threads that take a guard around a pretended graphExecute and record it. argv: guard or none, threads, calls a thread.
#include "htpsim_trace.h"

#include <condition_variable>
#include <cstdlib>
#include <thread>
#include <vector>

class TicketGuard {  // first come, first served, one slot
 public:
  long enter() { std::unique_lock<std::mutex> lock(mutex_); return last_++; }
  void acquire(long ticket) { std::unique_lock<std::mutex> lock(mutex_); turn_.wait(lock, [&] { return now_ == ticket; }); }
  void release() { { std::lock_guard<std::mutex> lock(mutex_); ++now_; } turn_.notify_all(); }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  long now_ = 0, last_ = 0;
};

int main(int argc, char** argv) {
  const bool guarded = argc > 1 && std::string(argv[1]) == "guard";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 4, calls = argc > 3 ? std::atoi(argv[3]) : 50;
  TicketGuard guard;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const std::string handle = "dialog \"" + std::to_string(t) + "\"";
      for (int i = 0; i < calls; ++i) {
        auto& trace = htpsim::Trace::get();
        const long long id = trace.call(t ? handle.c_str() : nullptr, t + 1, "llm\\0", i % 8 ? "decode" : "prefill");
        if (guarded) guard.acquire(guard.enter());
        trace.mark("grant", id);
        trace.mark("submit", id);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        trace.mark("return", id);
        if (guarded) guard.release();
      }
    });
  }
  for (auto& worker : workers) worker.join();
}

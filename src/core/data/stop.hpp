// Work that can be stopped: long loops ask now and then whether their result is still wanted.
#pragma once

#include <cstddef>
#include <exception>

namespace caltree {

// Thrown out of a loop whose result is no longer wanted.
struct Stopped : std::exception {
    const char* what() const noexcept override { return "stopped"; }
};

// Knows whether the work of a thread is still wanted. The core does not know who decides that.
class StopSource {
  public:
    // Throws if the work is to stop.
    virtual void check() = 0;

  protected:
    ~StopSource() = default;
};

// That of this thread; none: work goes on to its end.
inline constinit thread_local StopSource* stop_source = nullptr;

inline void check_stop() {
    if (stop_source != nullptr) stop_source->check();
}

// Asks once in so much work, about a millisecond of it, so that asking costs nothing.
class StopCheck {
  public:
    // `work`: rows that were looked at, each as often as it was.
    void count(std::size_t work) {
        done_ += work;
        if (done_ < work_between_checks) return;
        done_ = 0;
        check_stop();
    }

  private:
    static constexpr std::size_t work_between_checks = std::size_t{1} << 15;
    std::size_t done_ = 0;
};

}  // namespace caltree

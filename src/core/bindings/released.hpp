// Work without the GIL that can be stopped, by a signal or by a token.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "data/stop.hpp"

namespace caltree {

namespace nb = nanobind;

// Stops the work of the threads that watch it, and of no others.
class StopToken {
  public:
    void set() { *flag_ = true; }
    void watch() const { watched() = flag_; }

    // Whether the work of this thread is to stop.
    static bool is_set() { return watched() != nullptr && *watched(); }

  private:
    using Flag = std::shared_ptr<std::atomic<bool>>;

    // That of this thread, kept for as long as the thread lives.
    static Flag& watched() {
        static thread_local Flag flag;
        return flag;
    }

    Flag flag_ = std::make_shared<std::atomic<bool>>(false);
};

// The threads that are at work when Python ends. One that took the GIL again later would be ended
// by Python amid native code, which aborts the process; and one that raised would print, which
// may abort it, too. So they sleep until the process is gone, as from Python 3.14 on.
class AtExit {
  public:
    static bool is_reached() { return reached_; }
    static void enter() { ++n_working_; }
    static void leave() { --n_working_; }

    // Called when Python ends: stops all work and waits for it, within reason.
    static void stop_all() {
        reached_ = true;
        const nb::gil_scoped_release release;
        for (int i = 0; i < 1000 && n_working_ > 0; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    [[noreturn]] static void sleep() {
        while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }

  private:
    inline static std::atomic<bool> reached_ = false;
    inline static std::atomic<int> n_working_ = 0;
};

// Releases the GIL while it lives. The work meanwhile stops if a token that its thread watches is
// set, if Python ends, or, in the main thread, if the handler of a signal raises: Ctrl-C.
class Released final : public StopSource {
  public:
    Released() : previous_(stop_source), in_main_thread_(PyThread_get_thread_ident() == main_) {
        if (is_left_behind()) {
            PyEval_SaveThread();
            AtExit::sleep();
        }
        check_tokens();
        stop_source = this;
        AtExit::enter();
        state_ = PyEval_SaveThread();
    }
    ~Released() {
        if (is_left_behind()) {
            AtExit::leave();
            AtExit::sleep();
        }
        PyEval_RestoreThread(state_);
        AtExit::leave();
        stop_source = previous_;
    }
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;

    void check() override {
        check_tokens();
        if (in_main_thread_) check_signals();
    }

    // Remembers the thread that handles signals.
    static void set_main_thread(unsigned long id) { main_ = id; }

  private:
    bool is_left_behind() const { return AtExit::is_reached() && !in_main_thread_; }

    void check_tokens() const {
        if (StopToken::is_set() || is_left_behind()) throw Stopped();
    }

    void check_signals() {
        const auto now = std::chrono::steady_clock::now();
        if (now - asked_ < std::chrono::milliseconds(50)) return;
        asked_ = now;
        PyEval_RestoreThread(state_);
        std::exception_ptr raised;
        if (PyErr_CheckSignals() != 0) raised = std::make_exception_ptr(nb::python_error());
        state_ = PyEval_SaveThread();
        if (raised) std::rethrow_exception(raised);
    }

    inline static std::atomic<unsigned long> main_ = 0;

    StopSource* previous_;
    bool in_main_thread_;
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    PyThreadState* state_ = nullptr;
};

}  // namespace caltree

// Whether a waiting thread polls. Waking a blocked thread takes several microseconds, on a virtual machine some tens,
// which is a good part of a small search. So while processors are free, a thread that expects its event soon polls for
// it, for a bounded time. With more busy threads than processors, a polling thread would take the processor of a
// working one: then no thread polls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "engine/server/running_tasks.h"

namespace pgwarp
{

// The typical duration of waits of one kind. Used by one thread, or under the lock of its owner.
class TypicalWait
{
public:
    void add(std::chrono::nanoseconds wait);
    // How long to poll in the next wait: twice the typical duration, at least 50 and at most 200 us. 0: not at all,
    // because waits take longer, or too few were added.
    std::chrono::nanoseconds patience() const;

private:
    static constexpr std::chrono::nanoseconds most_counted = std::chrono::microseconds(800);
    std::chrono::nanoseconds average_ = most_counted;
};

// The recent maximum of a number: over the current period of 10 ms and the one before. Thread-safe.
class RecentNumber
{
public:
    using TimePoint = std::chrono::steady_clock::time_point;
    // The number of the period of a time; periods are numbered consecutively.
    static std::uint32_t period_of(TimePoint time);

    // Adds 1 to the value of this period, up to 65,535.
    void add_one(TimePoint now);
    // Raises the value of this period to at least `value`.
    void raise_to(std::size_t value, TimePoint now);
    std::size_t value(TimePoint now) const;

private:
    template <class Change>
    void update(TimePoint now, const Change& change);

    std::atomic<std::uint64_t> state_{0};  // the period, 16 bits of the one before, 16 of its own
};

// Typical times between requests and replies of a connection. Used by its I/O thread only.
struct ConnectionPace {
    TypicalWait question;  // from a reply to the next request
    TypicalWait answer;    // from a request to its reply
    std::chrono::steady_clock::time_point last_request{};
    std::chrono::steady_clock::time_point last_reply{};
    std::uint32_t counted_in = 0;  // the period in which it was counted last
};

// Counts the threads at work: of connections with recent requests, and of the engine. Thread-safe.
class BusyPoll
{
public:
    using TimePoint = std::chrono::steady_clock::time_point;

    // processors: usable by the process; all_processors: of the system; io_threads: of the server.
    BusyPoll(std::size_t processors, std::size_t all_processors, std::size_t io_threads);

    // A connection has sent its first request in flight, or gets the reply to its last one.
    void request_came(ConnectionPace& pace, TimePoint now);
    static void reply_goes(ConnectionPace& pace, TimePoint now);

    // Counts, every 5 ms, the tasks of other processes. Called by an I/O thread that is about to reply.
    void look_around(std::size_t in_flight, TimePoint now);
    // Takes in the number of tasks that run on the system, the calling I/O thread included.
    void note_running(std::size_t running, std::size_t in_flight, TimePoint now);

    // Whether a waiting thread may poll: there is a processor for each connection with a recent request, for the I/O
    // threads that serve these, for the other working threads of the engine, and for tasks of other processes.
    // in_flight: requests that are being served.
    bool has_room(std::size_t in_flight, TimePoint now) const;

    // Work of up to `threads` threads besides the I/O threads. It lasts as long as this object.
    class Work
    {
    public:
        Work(BusyPoll& busy_poll, std::size_t threads);
        ~Work();
        Work(const Work&) = delete;
        Work& operator=(const Work&) = delete;

    private:
        BusyPoll& busy_poll_;
        const std::size_t threads_;
    };

private:
    // Running tasks of the server. awake: waiting threads poll.
    std::size_t own_tasks(std::size_t in_flight, bool awake, TimePoint now) const;

    const std::size_t processors_;
    const std::size_t io_threads_;
    RecentNumber asking_;        // connections
    RecentNumber most_working_;  // maximum of working_
    std::atomic<std::size_t> working_{0};
    const std::size_t not_ours_;     // the system's processors that the process may not use
    std::atomic<double> others_{0};  // tasks of other processes, a moving average
    std::atomic<TimePoint> next_look_{TimePoint{}};
    RunningTasks tasks_;
};

// A short pause between two polls, which leaves the core to its other hardware thread.
void rest_between_looks();

}  // namespace pgwarp

// Whether those who wait stay awake. A thread that blocks is woken in several microseconds, on a virtual machine in
// some tens, which is a good part of a small search. So while few are at work, whoever waits for what comes soon polls
// for it, for a bounded time. With more at work than there are processors a poller would keep others from theirs: then
// nobody polls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "engine/server/running_tasks.h"

namespace pgwarp
{

// How long waits of one kind take, as a rule. Used by one thread, or under its owner's lock.
class TypicalWait
{
public:
    void add(std::chrono::nanoseconds wait);
    // How long to poll for the end of the next one: 50 to 200 us, twice as long as it takes as a rule. 0: it is not
    // worth it, because they take longer, or because too few are known.
    std::chrono::nanoseconds patience() const;

private:
    static constexpr std::chrono::nanoseconds most_counted = std::chrono::microseconds(800);
    std::chrono::nanoseconds average_ = most_counted;
};

// A number of some recent time: the largest that it had in the period of 10 ms that goes on and in the one before.
// Thread-safe.
class RecentNumber
{
public:
    using TimePoint = std::chrono::steady_clock::time_point;
    // Consecutive numbers of the periods.
    static std::uint32_t period_of(TimePoint time);

    // Counts one more in this period. No more than 65,535 are counted.
    void add_one(TimePoint now);
    // Makes it at least this in this period.
    void raise_to(std::size_t value, TimePoint now);
    std::size_t value(TimePoint now) const;

private:
    template <class Change>
    void update(TimePoint now, const Change& change);

    std::atomic<std::uint64_t> state_{0};  // the period, then 16 bits for the one before it and 16 for itself
};

// How soon a connection asks again, and how soon it is answered. Touched by its I/O thread alone.
struct ConnectionPace {
    TypicalWait question;  // from a reply to the next request
    TypicalWait answer;    // from a request to its reply
    std::chrono::steady_clock::time_point last_request{};
    std::chrono::steady_clock::time_point last_reply{};
    std::uint32_t counted_in = 0;  // the period in which it was counted last
};

// Knows who is at work: connections that ask, and the engine's threads. Thread-safe.
class BusyPoll
{
public:
    using TimePoint = std::chrono::steady_clock::time_point;

    // processors: that the process may use; all_processors: the system's; io_threads: of the server.
    BusyPoll(std::size_t processors, std::size_t all_processors, std::size_t io_threads);

    // A connection for which nothing was under way has sent a request; nothing is under way for it any more.
    void request_came(ConnectionPace& pace, TimePoint now);
    static void reply_goes(ConnectionPace& pace, TimePoint now);

    // Looks, once in 5 ms, whether others than this server use the processors: to be called by an I/O thread that is
    // about to reply.
    void look_around(std::size_t in_flight, TimePoint now);
    // What it makes of the number of tasks that run on the system, that I/O thread among them.
    void note_running(std::size_t running, std::size_t in_flight, TimePoint now);

    // Whether one who waits may poll: there is a processor for every connection that has asked lately, for the I/O
    // threads that serve them, for the threads at work besides, and for what else the system runs.
    // in_flight: requests that are being served.
    bool has_room(std::size_t in_flight, TimePoint now) const;

    // Work that so many threads may take part in, besides the I/O threads; it lasts as long as this.
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
    // Tasks of the server's own that run, where those who wait poll or don't.
    std::size_t own_tasks(std::size_t in_flight, bool awake, TimePoint now) const;

    const std::size_t processors_;
    const std::size_t io_threads_;
    RecentNumber asking_;        // connections
    RecentNumber most_working_;  // working_, at most
    std::atomic<std::size_t> working_{0};
    const std::size_t not_ours_;     // the system's processors that the process may not use
    std::atomic<double> others_{0};  // tasks that are none of the server's, as a rule
    std::atomic<TimePoint> next_look_{TimePoint{}};
    RunningTasks tasks_;
};

// To be done between two looks at what is waited for: leaves the core to its other thread for a moment.
void rest_between_looks();

}  // namespace pgwarp

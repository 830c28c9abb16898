#include "engine/server/busy_poll.h"

#include <hwy/cache_control.h>

#include <algorithm>

#include "protocol/messages.h"

namespace pgwarp
{

namespace
{

constexpr std::chrono::nanoseconds least_patience = std::chrono::microseconds(50);
constexpr std::chrono::nanoseconds most_patience{longest_poll_hint_ns};
constexpr int weight = 8;  // a new wait counts an eighth: polling begins after a dozen short waits
constexpr auto period = std::chrono::milliseconds(10);
constexpr std::uint64_t most_counted_number = 0xffff;
constexpr int pauses = 4;
constexpr auto look_interval = std::chrono::milliseconds(5);
constexpr double look_weight = 0.25;  // of a new count: tasks of some 20 ms matter
constexpr double tolerance = 0.5;     // short tasks of the system

struct Numbers {
    std::uint32_t period;
    std::uint64_t before;
    std::uint64_t now;
};

Numbers unpack(std::uint64_t state)
{
    return {static_cast<std::uint32_t>(state >> 32), state >> 16 & 0xffff, state & 0xffff};
}

std::uint64_t pack(const Numbers& numbers)
{
    return std::uint64_t{numbers.period} << 32 | numbers.before << 16 | std::min(numbers.now, most_counted_number);
}

// Numbers stored in one period, as they read in period `to`.
Numbers moved_on(const Numbers& numbers, std::uint32_t to)
{
    const auto passed = static_cast<std::int32_t>(to - numbers.period);
    if (passed <= 0) return numbers;  // another thread has stored a later time
    return {to, passed == 1 ? numbers.now : 0, 0};
}

}  // namespace

void TypicalWait::add(std::chrono::nanoseconds wait)
{
    average_ += (std::clamp(wait, std::chrono::nanoseconds{0}, most_counted) - average_) / weight;
}

std::chrono::nanoseconds TypicalWait::patience() const
{
    if (average_ > most_patience) return std::chrono::nanoseconds{0};
    return std::clamp(2 * average_, least_patience, most_patience);
}

std::uint32_t RecentNumber::period_of(TimePoint time)
{
    return static_cast<std::uint32_t>(time.time_since_epoch() / period);
}

template <class Change>
void RecentNumber::update(TimePoint now, const Change& change)
{
    const std::uint32_t current = period_of(now);
    std::uint64_t known = state_.load(std::memory_order_relaxed);
    std::uint64_t wanted = 0;
    do {
        Numbers numbers = moved_on(unpack(known), current);
        numbers.now = change(numbers.now);
        wanted = pack(numbers);
    } while (wanted != known && !state_.compare_exchange_weak(known, wanted, std::memory_order_relaxed));
}

void RecentNumber::add_one(TimePoint now)
{
    update(now, [](std::uint64_t value) { return value + 1; });
}

void RecentNumber::raise_to(std::size_t value, TimePoint now)
{
    update(now, [value](std::uint64_t before) { return std::max<std::uint64_t>(before, value); });
}

std::size_t RecentNumber::value(TimePoint now) const
{
    const Numbers numbers = moved_on(unpack(state_.load(std::memory_order_relaxed)), period_of(now));
    return std::max(numbers.before, numbers.now);
}

BusyPoll::BusyPoll(std::size_t processors, std::size_t all_processors, std::size_t io_threads)
    : processors_(processors), io_threads_(io_threads), not_ours_(all_processors - std::min(all_processors, processors))
{
}

void BusyPoll::request_came(ConnectionPace& pace, TimePoint now)
{
    if (pace.last_reply != TimePoint{}) pace.question.add(now - pace.last_reply);
    pace.last_request = now;
    const std::uint32_t current = RecentNumber::period_of(now);
    if (pace.counted_in == current) return;
    pace.counted_in = current;
    asking_.add_one(now);
}

void BusyPoll::reply_goes(ConnectionPace& pace, TimePoint now)
{
    pace.answer.add(now - pace.last_request);
    pace.last_reply = now;
}

void BusyPoll::look_around(std::size_t in_flight, TimePoint now)
{
    TimePoint due = next_look_.load(std::memory_order_relaxed);
    if (now < due || !next_look_.compare_exchange_strong(due, now + look_interval, std::memory_order_relaxed)) return;
    if (const auto running = tasks_.count()) note_running(*running, in_flight, now);
}

void BusyPoll::note_running(std::size_t running, std::size_t in_flight, TimePoint now)
{
    const std::size_t known = own_tasks(in_flight, has_room(in_flight, now), now) + not_ours_;
    const double others = static_cast<double>(running - std::min(running, known));
    const double before = others_.load(std::memory_order_relaxed);
    others_.store(before + look_weight * (others - before), std::memory_order_relaxed);
}

std::size_t BusyPoll::own_tasks(std::size_t in_flight, bool awake, TimePoint now) const
{
    const std::size_t asking = std::max(asking_.value(now), in_flight);
    const std::size_t working = std::max(most_working_.value(now), working_.load(std::memory_order_relaxed));
    // Unless waiting threads poll, only one end of a connection runs at a time.
    return asking + (awake ? std::min(asking, io_threads_) : 0) + working;
}

bool BusyPoll::has_room(std::size_t in_flight, TimePoint now) const
{
    const double others = others_.load(std::memory_order_relaxed);
    return static_cast<double>(own_tasks(in_flight, true, now)) + others <=
           static_cast<double>(processors_) + tolerance;
}

BusyPoll::Work::Work(BusyPoll& busy_poll, std::size_t threads) : busy_poll_(busy_poll), threads_(threads)
{
    const std::size_t before = busy_poll_.working_.fetch_add(threads_, std::memory_order_relaxed);
    busy_poll_.most_working_.raise_to(before + threads_, std::chrono::steady_clock::now());
}

BusyPoll::Work::~Work()
{
    const std::size_t before = busy_poll_.working_.fetch_sub(threads_, std::memory_order_relaxed);
    busy_poll_.most_working_.raise_to(before, std::chrono::steady_clock::now());
}

void rest_between_looks()
{
    for (int i = 0; i < pauses; ++i) hwy::Pause();
}

}  // namespace pgwarp

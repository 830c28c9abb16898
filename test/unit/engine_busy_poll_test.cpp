// Polling of waiting threads: the rules for whether and how long a thread polls, and a live server that follows them.
#include <gtest/gtest.h>
#include <time.h>

#include <thread>

#include "engine/server/busy_poll.h"
#include "engine/server/running_tasks.h"
#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

using namespace std::chrono_literals;
using TimePoint = BusyPoll::TimePoint;

const TimePoint start = TimePoint{} + 1h;
constexpr auto long_after = 30ms;  // longer than anything is recent

TEST(TypicalWait, IsNotPolledForUntilItIsKnown)
{
    TypicalWait wait;
    EXPECT_EQ(wait.patience(), 0ns);
    wait.add(10us);
    wait.add(10us);
    EXPECT_EQ(wait.patience(), 0ns);
    for (int i = 0; i < 100; ++i) wait.add(10us);
    EXPECT_EQ(wait.patience(), 50us);
}

TEST(TypicalWait, IsPolledForTwiceAsLongAsItTakes)
{
    TypicalWait wait;
    for (int i = 0; i < 200; ++i) wait.add(60us);
    EXPECT_NEAR(static_cast<double>(wait.patience().count()), 120e3, 2e3);
    for (int i = 0; i < 200; ++i) wait.add(150us);
    EXPECT_EQ(wait.patience().count(), longest_poll_hint_ns);
}

TEST(TypicalWait, IsNotPolledForWhenItIsLong)
{
    TypicalWait wait;
    for (int i = 0; i < 200; ++i) wait.add(20us);
    wait.add(1h);
    EXPECT_GT(wait.patience(), 0ns) << "one long wait among many";
    for (int i = 0; i < 200; ++i) wait.add(10ms);
    EXPECT_EQ(wait.patience(), 0ns);
    for (int i = 0; i < 20; ++i) wait.add(20us);
    EXPECT_GT(wait.patience(), 0ns) << "long waits are forgotten";
}

TEST(RecentNumber, IsTheLargestOfThisPeriodAndTheOneBefore)
{
    RecentNumber number;
    EXPECT_EQ(number.value(start), 0U);
    number.add_one(start);
    number.add_one(start);
    EXPECT_EQ(number.value(start), 2U);
    number.add_one(start + 10ms);
    EXPECT_EQ(number.value(start + 10ms), 2U);
    EXPECT_EQ(number.value(start + 20ms), 1U);
    EXPECT_EQ(number.value(start + 30ms), 0U);
    number.raise_to(5, start + 40ms);
    number.raise_to(3, start + 40ms);
    EXPECT_EQ(number.value(start + 40ms), 5U);
    EXPECT_EQ(number.value(start + 39ms), 5U) << "a time that another thread took before";
    EXPECT_EQ(number.value(start + 1h), 0U);
}

TEST(RecentNumber, CountsWhatThreadsAddAtOnce)
{
    RecentNumber number;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int j = 0; j < 5000; ++j) number.add_one(start);
        });
    }
    threads.clear();
    EXPECT_EQ(number.value(start), 20000U);
    for (int i = 0; i < 50000; ++i) number.add_one(start);
    EXPECT_EQ(number.value(start), 65535U) << "no more are counted, and none wraps";
}

// The largest number of connections with requests at which waiting threads poll.
std::size_t most_awake(std::size_t processors, std::size_t io_threads)
{
    BusyPoll busy_poll(processors, processors, io_threads);
    for (std::size_t connections = 1; connections < 100; ++connections) {
        ConnectionPace pace;
        busy_poll.request_came(pace, start);
        if (!busy_poll.has_room(1, start)) return connections - 1;
    }
    return 100;
}

TEST(BusyPoll, NeedsAProcessorForEachConnectionAndTheThreadThatServesIt)
{
    EXPECT_EQ(most_awake(1, 2), 0U);
    EXPECT_EQ(most_awake(2, 2), 1U);
    EXPECT_EQ(most_awake(3, 2), 1U);
    EXPECT_EQ(most_awake(4, 2), 2U);
    EXPECT_EQ(most_awake(16, 4), 12U);
}

TEST(BusyPoll, CountsAConnectionOnceForAsLongAsItAsks)
{
    BusyPoll busy_poll(2, 2, 2);
    ConnectionPace first;
    ConnectionPace second;
    const TimePoint end = start + 95ms;
    for (auto now = start; now < end; now += 100us) {
        busy_poll.request_came(first, now);
        BusyPoll::reply_goes(first, now + 20us);
        ASSERT_TRUE(busy_poll.has_room(1, now)) << (now - start).count();
    }
    busy_poll.request_came(second, end);
    EXPECT_FALSE(busy_poll.has_room(1, end));
    EXPECT_TRUE(busy_poll.has_room(1, end + long_after));
    EXPECT_FALSE(busy_poll.has_room(2, end + long_after)) << "requests that take long";
    EXPECT_GT(first.answer.patience(), 0ns);
    EXPECT_GT(first.question.patience(), 0ns);
    EXPECT_EQ(second.question.patience(), 0ns);
}

TEST(BusyPoll, CountsThreadsAtWorkAndForAWhileAfterwards)
{
    BusyPoll busy_poll(8, 8, 2);
    const TimePoint before = std::chrono::steady_clock::now();
    {
        const BusyPoll::Work build(busy_poll, 4);
        EXPECT_TRUE(busy_poll.has_room(2, before));
        EXPECT_FALSE(busy_poll.has_room(3, before));
        const BusyPoll::Work search(busy_poll, 3);
        EXPECT_FALSE(busy_poll.has_room(1, before + 1h)) << "as long as it lasts";
    }
    EXPECT_FALSE(busy_poll.has_room(1, std::chrono::steady_clock::now()));
    EXPECT_TRUE(busy_poll.has_room(6, std::chrono::steady_clock::now() + long_after));
}

TEST(BusyPoll, LeavesProcessorsToOthers)
{
    BusyPoll busy_poll(2, 2, 2);
    ConnectionPace pace;
    TimePoint now = start;
    const auto look = [&](std::size_t running) {
        for (int i = 0; i < 20; ++i, now += 5ms) {
            busy_poll.request_came(pace, now);
            busy_poll.note_running(running, 1, now);
        }
        return busy_poll.has_room(1, now);
    };
    EXPECT_TRUE(look(2)) << "the I/O thread and the session";
    busy_poll.note_running(4, 1, now);
    EXPECT_TRUE(busy_poll.has_room(1, now)) << "what comes and goes";
    EXPECT_FALSE(look(3)) << "and one that is not ours";
    EXPECT_FALSE(look(2)) << "the session blocks now, and the other is still there";
    EXPECT_TRUE(look(1));
    EXPECT_TRUE(look(2));
}

TEST(BusyPoll, DoesNotMindOthersOnProcessorsThatAreNotItsOwn)
{
    BusyPoll busy_poll(2, 8, 2);
    ConnectionPace pace;
    for (auto now = start; now < start + 100ms; now += 5ms) {
        busy_poll.request_came(pace, now);
        busy_poll.note_running(8, 1, now);
        EXPECT_TRUE(busy_poll.has_room(1, now));
    }
    for (auto now = start + 100ms; now < start + 200ms; now += 5ms) {
        busy_poll.request_came(pace, now);
        busy_poll.note_running(9, 1, now);
    }
    EXPECT_FALSE(busy_poll.has_room(1, start + 200ms));
}

TEST(RunningTasks, CountsThisOne)
{
    const RunningTasks tasks;
    const auto count = tasks.count();
    ASSERT_TRUE(count.has_value());
    EXPECT_GE(*count, 1U);
    EXPECT_LT(*count, 100000U);
}

EngineOptions with_processors(std::size_t processors)
{
    EngineOptions options;
    options.processors = processors;
    options.threads = 1;
    return options;
}

// More processors than any machine has tasks: those of other processes leave room for polling.
constexpr std::size_t enough_processors = 1'000'000;

// Sends requests until a reply tells its receiver to poll. They are sent one by one and several together: the waits
// between those sent together are short also where no thread soon gets a processor.
bool becomes_awake(EngineClient& client)
{
    for (int round = 0; round < 10'000; ++round) {
        const int together = 1 << round % 5;
        std::vector<std::uint64_t> ids;
        for (int i = 0; i < together; ++i) ids.push_back(client.send(MessageType::status));
        bool awake = false;
        for (const std::uint64_t id : ids) {
            client.wait(id);
            awake = awake || client.poll_hint_ns() > 0;
        }
        if (awake) return true;
    }
    return false;
}

TEST(AwakeServer, TellsWhoAsksOften)
{
    TestServer server(with_processors(enough_processors));
    EngineClient client(server.path());
    EXPECT_EQ(client.poll_hint_ns(), 0U) << "nothing is known yet";
    ASSERT_TRUE(becomes_awake(client));
    EXPECT_LE(client.poll_hint_ns(), longest_poll_hint_ns);
}

TEST(AwakeServer, TellsNobodyWithoutAProcessorForIt)
{
    TestServer server(with_processors(1));
    EngineClient client(server.path());
    for (int i = 0; i < 300; ++i) {
        client.call(MessageType::status);
        ASSERT_EQ(client.poll_hint_ns(), 0U);
    }
}

TEST(AwakeServer, TellsNobodyWhoAsksRarely)
{
    TestServer server(with_processors(enough_processors));
    EngineClient client(server.path());
    for (int i = 0; i < 50; ++i) {
        client.call(MessageType::status);
        ASSERT_EQ(client.poll_hint_ns(), 0U);
        std::this_thread::sleep_for(2ms);
    }
}

std::chrono::nanoseconds processor_time(clockid_t clock)
{
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Processor time of the process's other threads while this thread uses 200 ms of it. A thread that never sleeps gets
// about as much as this one, however many others want the processors.
std::chrono::nanoseconds used_beside_this_thread()
{
    const auto own = processor_time(CLOCK_THREAD_CPUTIME_ID);
    const auto all = processor_time(CLOCK_PROCESS_CPUTIME_ID);
    while (processor_time(CLOCK_THREAD_CPUTIME_ID) - own < 200ms) rest_between_looks();
    const auto all_used = processor_time(CLOCK_PROCESS_CPUTIME_ID) - all;
    return all_used - (processor_time(CLOCK_THREAD_CPUTIME_ID) - own);
}

TEST(AwakeServer, SleepsWhenNobodyAsks)
{
    TestServer server(with_processors(enough_processors));
    EngineClient client(server.path());
    ASSERT_TRUE(becomes_awake(client));
    std::this_thread::sleep_for(10ms);
    EXPECT_LT(used_beside_this_thread(), 50ms);
}

class AwakeQueue : public testing::Test
{
protected:
    AwakeQueue() : index_(TestIndex::random(20, 4, Metric::l2)), client_(server_.path())
    {
        load(client_, index_, build(client_, index_));
        test_method_state().cost = 1e9;
    }
    ~AwakeQueue() override { test_method_state().cost = 1.0; }

    // Searches, mostly for one query, now and then for many, each as soon as the one before is answered.
    void search_often(EngineClient& client)
    {
        constexpr std::uint32_t many = 40;
        const std::vector<float> queries(many * 4, 0.5F);
        for (int i = 0; i < 2000; ++i) {
            const std::uint32_t count = i % 16 == 15 ? many : 1;
            const auto outcome =
                search(client, search_request(index_, 3, count), {queries.begin(), queries.begin() + 4 * count});
            ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
            ASSERT_EQ(outcome.reply.query_count, count);
        }
    }

    TestServer server_{with_processors(enough_processors)};
    TestIndex index_;
    EngineClient client_;
};

TEST_F(AwakeQueue, AnswersOneAfterTheOther)
{
    search_often(client_);
}

// Workers poll and sleep while several threads count on them: every search is answered.
TEST_F(AwakeQueue, AnswersSeveralAtOnce)
{
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([this] {
            EngineClient client(server_.path());
            search_often(client);
        });
    }
}

}  // namespace
}  // namespace pgwarp

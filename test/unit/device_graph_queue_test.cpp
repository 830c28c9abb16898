// The bounded queue of the searches on a device, on threads of the CPU: the best of all that was offered stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "graph/queue.h"
#include "host_group.h"

namespace pgwarp::test
{

namespace
{

using namespace cuda::graph;

struct Work {
    std::uint32_t threads;
    std::uint32_t length;
    std::uint32_t batch;  // entries offered together
    bool repeats;         // some are offered twice, or are in the queue
};

// Batches of entries; scores are few, so that rows decide among equal ones.
std::vector<std::vector<Entry>> some_batches(const Work& work, std::mt19937& random)
{
    std::vector<std::vector<Entry>> batches(4);
    std::set<Entry> seen;
    for (std::vector<Entry>& batch : batches) {
        while (batch.size() < work.batch) {
            const Entry entry = make_entry(static_cast<float>(random() % 64), random() % 100000);
            if (seen.insert(entry).second || work.repeats) batch.push_back(entry);
            if (work.repeats && random() % 4 == 0) batch.push_back(entry);
        }
        batch.resize(work.batch);
    }
    return batches;
}

std::vector<Entry> best_of(const std::vector<std::vector<Entry>>& batches, std::uint32_t length)
{
    std::set<Entry> all;
    for (const auto& batch : batches) all.insert(batch.begin(), batch.end());
    std::vector<Entry> best(all.begin(), all.end());
    best.resize(length, no_entry);
    return best;
}

class Queues : public testing::TestWithParam<Work>
{
};

TEST_P(Queues, KeepTheBestThatWereOffered)
{
    const Work work = GetParam();
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        const auto batches = some_batches(work, random);
        TraversalShape shape;
        shape.length = work.length;
        shape.most_batch = work.batch;
        const HostMemory memory(shape);
        std::vector<Entry> found;
        bool trimmed = false;
        HostGroup::run(work.threads, [&](HostGroup group) {
            Queue<HostGroup, HostMemory> queue(group, memory, work.length);
            queue.clear();
            group.sync();
            for (const auto& batch : batches) {
                for (std::uint32_t i = group.rank(); i < batch.size(); i += group.size()) queue.offer(batch[i]);
                group.sync();
                const auto ignore = [](std::uint32_t) {};
                queue.take_in(
                    work.repeats, [](std::uint32_t, std::uint32_t) {}, ignore, ignore);
            }
            if (group.rank() == 0) {
                found.assign(queue.entries(), queue.entries() + work.length);
                trimmed = queue.trims();
            }
        });
        EXPECT_EQ(found, best_of(batches, work.length));
        EXPECT_TRUE(memory.is_intact());
        EXPECT_EQ(trimmed, work.threads > work.length);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Queues,
                         testing::Values(Work{1, 10, 100, false}, Work{7, 10, 100, false}, Work{8, 7, 22, false},
                                         Work{16, 7, 200, false}, Work{16, 7, 200, true}, Work{16, 15, 300, false},
                                         Work{16, 1, 40, true}, Work{24, 20, 70, true}, Work{16, 1, 5, false},
                                         Work{24, 3, 11, true}, Work{16, 2, 16, false}, Work{16, 2, 17, false}));

}  // namespace

}  // namespace pgwarp::test

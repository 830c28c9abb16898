// Searches with predicates on the device: only rows that pass, all that are wanted, in order; exact ones as a scan of
// all rows finds them, the others with the CPU's recall.
#include <memory>

#include "device/context.h"
#include "filtered_kinds.h"
#include "methods.h"

namespace pgwarp::test
{
namespace
{

// The CPU serves the others.
std::vector<FilteredKind> device_kinds()
{
    std::vector<FilteredKind> kinds = filtered_kinds();
    std::erase_if(kinds, [](const FilteredKind& kind) {
        return kind.element == ElementType::bit || kind.element == ElementType::minhash_set ||
               kind.element == ElementType::bag || kind.element == ElementType::sparse;
    });
    return kinds;
}

class DeviceFilteredSearches : public FilteredSearchTest
{
protected:
    DeviceFilteredSearches() { cuda::contexts().push_back(std::make_unique<cuda::Context>(0, 0)); }
    ~DeviceFilteredSearches() override { cuda::contexts().clear(); }
    static const MethodFactory* device() { return cuda::find_method(GetParam().method); }

    // The share of the k nearest rows that were found.
    static double recall(const Filtered& index, const SearchAnswer& answer, const RowView& queries, std::size_t k,
                         const Predicate& predicate)
    {
        std::size_t wanted = 0;
        std::size_t right = 0;
        std::size_t at = 0;
        for (std::size_t q = 0; q < queries.count; ++q) {
            const auto truth = index.truth(queries.row(q), k, predicate);
            std::set<std::size_t> nearest;
            for (const auto& [distance, row] : truth) nearest.insert(row);
            wanted += nearest.size();
            for (const std::size_t end = at + answer.counts[q]; at < end; ++at)
                right += nearest.count(row_of(answer.results[at].tid));
        }
        return static_cast<double>(right) / static_cast<double>(wanted);
    }
};

TEST_P(DeviceFilteredSearches, FindWhatPasses)
{
    expect_what_passes(device());
}

TEST_P(DeviceFilteredSearches, HoldForEveryPassRate)
{
    expect_every_pass_rate(device());
}

TEST_P(DeviceFilteredSearches, FindTheRowsOfABitmap)
{
    expect_named(device());
}

TEST_P(DeviceFilteredSearches, GoOnToTheLastRow)
{
    expect_every_row(device());
}

TEST_P(DeviceFilteredSearches, FindAsMuchAsTheCpu)
{
    constexpr std::size_t count = 60;
    constexpr std::uint32_t k = 10;
    const auto on_cpu = make(0);
    const auto on_device = make(0, device());
    EXPECT_TRUE(on_device->mirror->on_cuda());
    const OwnedRows asked = queries(count);
    for (const std::uint64_t below : {3, 60, 300, 1500, 2900}) {
        const Predicate predicate = Predicate().where(0, 0, below - 1);
        const std::vector<Predicate> predicates(count, predicate);
        for (const std::int64_t effort : {8, 40}) {
            const SearchAnswer found = on_device->search(on_device->settings(k, effort), asked.view(), predicates);
            const SearchAnswer known = on_cpu->search(on_cpu->settings(k, effort), asked.view(), predicates);
            EXPECT_GE(recall(*on_device, found, asked.view(), k, predicate),
                      recall(*on_cpu, known, asked.view(), k, predicate) - 0.02)
                << below << " of " << values << ", effort " << effort << ", ways "
                << static_cast<int>(filtered_of(found, 0, count).ways);
        }
    }
}

// Searches with predicates, in turns with others, leave each the bitmap of its own.
TEST_P(DeviceFilteredSearches, TakeTurnsWithOthers)
{
    const auto index = make(0, device());
    index->kill({1, 2, 3, 500, 501, 3999}, 2);
    const OwnedRows asked = queries(8);
    for (int turn = 0; turn < 20; ++turn) {
        const std::uint64_t first = static_cast<std::uint64_t>(turn % 10) * 150;
        const std::vector<Predicate> wanted(8, turn % 2 == 0 ? Predicate().where(0, first, first + 1400) : Predicate());
        const SearchAnswer answer = index->search(index->settings(10, 200), asked.view(), wanted);
        expect_right(*index, answer, asked.view(), wanted, 10);
        if (HasFatalFailure()) return;
    }
}

// Queries with predicates of their own, of many pass rates, beside queries without one, find as much as alone.
TEST_P(DeviceFilteredSearches, FindTheSameInEveryBatch)
{
    constexpr std::size_t count = 90;
    const auto index = make(0, device());
    index->kill({1, 2, 3, 500, 501, 3999}, 2);
    const OwnedRows asked = queries(count);
    std::vector<Predicate> wanted;
    for (std::size_t q = 0; q < count; ++q) {
        const std::uint64_t passing = values / (1 + q % 17 * (q % 17));
        wanted.push_back(q % 10 == 9 ? Predicate() : Predicate().where(q % columns, q, q + passing));
    }
    const SearchAnswer together = index->search(index->settings(10, 60), asked.view(), wanted);
    expect_right(*index, together, asked.view(), wanted, 10);
    if (HasFatalFailure()) return;
    std::size_t at = 0;
    for (std::size_t q = 0; q < count; ++q) {
        const SearchAnswer alone = index->search(index->settings(10, 60), asked.view().row(q), {wanted[q]});
        ASSERT_EQ(alone.counts[0], together.counts[q]);
        for (std::size_t i = 0; i < alone.counts[0]; ++i, ++at)
            EXPECT_EQ(alone.results[i].distance, together.results[at].distance) << "query " << q << " result " << i;
    }
}

// The device tests rows for queries with predicates of their own; a bitmap of the host serves many queries of one.
TEST_P(DeviceFilteredSearches, MakeNoBitmapForEachQuery)
{
    constexpr std::size_t count = 40;
    if (GetParam().method != Method::exact || is_list(GetParam().element)) GTEST_SKIP() << "has no such choice";
    const auto index = make(0, device());
    const OwnedRows asked = queries(count);
    std::vector<Predicate> own;
    for (std::size_t q = 0; q < count; ++q) own.push_back(Predicate().where(0, q, values / 2 + q));
    const SearchAnswer answer = index->search(index->settings(10, 0), asked.view(), own);
    expect_right(*index, answer, asked.view(), own, 10);
    for (std::size_t q = 0; q < count; ++q) EXPECT_EQ(filtered_of(answer, q, 1).ways, FilterWays::scanned);
    const std::vector<Predicate> one(count, own[0]);
    const SearchAnswer together = index->search(index->settings(10, 0), asked.view(), one);
    expect_right(*index, together, asked.view(), one, 10);
}

// Predicates of many ranges and of all columns.
TEST_P(DeviceFilteredSearches, TakeLongPredicates)
{
    constexpr std::size_t count = 40;
    const auto index = make(0, device());
    const OwnedRows asked = queries(count);
    std::vector<Predicate> wanted;
    for (std::size_t q = 0; q < count; ++q) {
        Ranges ranges;
        for (std::uint64_t first = q; first < values; first += 7) ranges.push_back({first, first + 3 + q % 3});
        wanted.push_back(Predicate().where(0, ranges));
        if (q % 2 == 0) wanted.back().where(1, 0, values / 2).where(3, values / 8, values);
    }
    for (const std::uint32_t k : {10U, 200U}) {
        const SearchAnswer answer = index->search(index->settings(k, 100), asked.view(), wanted);
        expect_right(*index, answer, asked.view(), wanted, k);
        if (HasFatalFailure()) return;
    }
}

// Long queues, for which the shared memory of a small device's blocks is short.
TEST_P(DeviceFilteredSearches, FitInASmallDevice)
{
    if (GetParam().method != Method::graph) GTEST_SKIP() << "has no queue";
    cuda::contexts().back()->limit_shared_bytes(std::size_t{64} << 10);
    const auto index = make(0, device());
    const OwnedRows asked = queries(20);
    for (const std::uint64_t below : {600, 1500, 2900}) {
        const std::vector<Predicate> wanted(20, Predicate().where(0, 0, below - 1));
        for (const std::uint32_t k : {10U, 100U, 500U}) {
            const SearchAnswer answer = index->search(index->settings(k, 40), asked.view(), wanted);
            expect_right(*index, answer, asked.view(), wanted, k);
            if (HasFatalFailure()) return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceFilteredSearches, testing::ValuesIn(device_kinds()), name_of_kind);

}  // namespace
}  // namespace pgwarp::test

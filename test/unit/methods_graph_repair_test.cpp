// graph: rows that died, taken out of the graph by merges.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>

#include "graph_pages.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/insertion.h"
#include "methods/graph/traversal.h"

namespace pgwarp::test
{
namespace
{

class OneQuery : public Scorer
{
public:
    OneQuery(const float* query, std::span<const float> rows, std::size_t dimensions)
        : query_(query), rows_(rows), dimensions_(dimensions)
    {
    }
    void scores(std::span<const std::uint32_t> rows, float* out) const override
    {
        for (std::size_t i = 0; i < rows.size(); ++i)
            out[i] =
                static_cast<float>(canonical_l2_squared(query_, rows_.data() + rows[i] * dimensions_, dimensions_));
    }

private:
    const float* query_;
    std::span<const float> rows_;
    std::size_t dimensions_;
};

struct Found {
    double recall = 0;    // of the ten nearest live rows
    double compared = 0;  // rows, a search
};

// Overlapping clusters, in an order of no meaning.
class GraphRepair : public testing::Test
{
protected:
    static constexpr std::size_t dimensions = 16;
    static constexpr std::size_t clusters = 20;
    static constexpr std::size_t query_count = 200;
    static constexpr std::size_t count = 4000;

    void SetUp() override
    {
        std::mt19937 generator(5);
        std::normal_distribution<float> normal;
        std::vector<float> centres(clusters * dimensions);
        for (float& value : centres) value = 1.2F * normal(generator);
        const auto draw = [&](std::vector<float>& out, std::vector<std::size_t>& cluster, std::size_t wanted) {
            for (std::size_t i = 0; i < wanted; ++i) {
                cluster.push_back(generator() % clusters);
                for (std::size_t d = 0; d < dimensions; ++d)
                    out.push_back(centres[cluster.back() * dimensions + d] + normal(generator));
            }
        };
        std::vector<std::size_t> of_queries;
        draw(rows, cluster_of, count);
        draw(queries, of_queries, query_count);
    }
    std::vector<float> live_rows(const std::vector<bool>& dead, std::vector<std::uint32_t>* numbers = nullptr) const
    {
        std::vector<float> live;
        for (std::size_t row = 0; row < dead.size(); ++row) {
            if (dead[row]) continue;
            live.insert(live.end(), rows.begin() + static_cast<std::ptrdiff_t>(row * dimensions),
                        rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * dimensions));
            if (numbers != nullptr) numbers->push_back(static_cast<std::uint32_t>(row));
        }
        return live;
    }
    // Searches that keep 24 rows, along the edges of `pages`, whose rows are `of`.
    Found search(const Pages& pages, std::span<const float> of, const std::vector<bool>& dead) const
    {
        const std::vector<std::uint64_t> bitmap = Pages::bitmap_of(dead);
        const GraphEdges edges = pages.edges();
        const auto seeds = pages.values<std::uint32_t>(array_seeds);
        std::size_t linked = 0;
        for (std::size_t row = 0; row < dead.size(); ++row)
            linked += dead[row] && edges.of(row)[0] != no_neighbour ? 1 : 0;
        std::vector<std::uint32_t> numbers;
        std::vector<float> live;
        for (std::size_t row = 0; row < edges.count(); ++row) {
            if (row < dead.size() && dead[row]) continue;
            numbers.push_back(static_cast<std::uint32_t>(row));
            live.insert(live.end(), of.begin() + static_cast<std::ptrdiff_t>(row * dimensions),
                        of.begin() + static_cast<std::ptrdiff_t>((row + 1) * dimensions));
        }
        Found total;
        TraversalScratch scratch;
        for (std::size_t q = 0; q < query_count; ++q) {
            const float* query = queries.data() + q * dimensions;
            traverse(edges, seeds, 24, {bitmap, linked, numbers.size()}, OneQuery(query, of, dimensions), nullptr,
                     scratch);
            std::vector<RowResult> found;
            for (const BestRows::Entry& entry : scratch.best.entries())
                if (!entry.dead && found.size() < 10) found.push_back({entry.score, entry.row});
            std::vector<RowResult> truth = brute_force(Metric::l2, query, live, dimensions, 10);
            for (RowResult& row : truth) row.row = numbers[row.row];
            total.recall += recall(found, truth) / query_count;
            total.compared += static_cast<double>(scratch.compared) / query_count;
        }
        return total;
    }
    // Recall and cost after rows died, and after a merge, beside those of an index built of the live rows.
    void compare(const std::string& name, const std::vector<bool>& dead)
    {
        if (built == nullptr)
            built = std::make_unique<Index>(Method::graph, Metric::l2, dimensions, rows, make_list({}), pool);
        Pages pages(*built);
        const std::vector<float> live = live_rows(dead);
        const Pages fresh_pages(Index(Method::graph, Metric::l2, dimensions, live, {}, pool));
        const Found fresh = search(fresh_pages, live, {});
        const Found before = search(pages, rows, dead);
        pages.grow({}, {dead}, pool);
        expect_sound(pages, dead);
        const Found after = search(pages, rows, dead);
        std::printf(
            "%s: %zu of %zu dead, recall %.4f, %.0f compared; after a merge %.4f, %.0f; built of the others "
            "%.4f, %.0f\n",
            name.c_str(), count_of(dead), dead.size(), before.recall, before.compared, after.recall, after.compared,
            fresh.recall, fresh.compared);
        EXPECT_GE(after.recall, fresh.recall - 0.01) << name;
        EXPECT_LE(after.compared, 1.25 * fresh.compared) << name;
        EXPECT_LT(after.compared, before.compared) << name;
    }

    ThreadPool pool{2};
    std::vector<float> rows;
    std::vector<float> queries;
    std::vector<std::size_t> cluster_of;
    std::unique_ptr<Index> built;
};

TEST_F(GraphRepair, RandomRows)
{
    for (const unsigned percent : {10U, 30U, 50U}) {
        std::mt19937 generator(percent);
        std::vector<bool> dead(count);
        for (std::size_t row = 0; row < count; ++row) dead[row] = generator() % 100 < percent;
        compare("random " + std::to_string(percent), dead);
    }
}

TEST_F(GraphRepair, WholeClusters)
{
    for (const std::size_t gone : {1U, 2U, 6U, 10U}) {
        std::vector<bool> dead(count);
        for (std::size_t row = 0; row < count; ++row) dead[row] = cluster_of[row] < gone;
        compare("clusters " + std::to_string(gone), dead);
    }
}

TEST_F(GraphRepair, IsTheSameHoweverManyThreads)
{
    const std::vector<float> first(rows.begin(), rows.begin() + 1500 * dimensions);
    const std::vector<float> second(rows.begin() + 1500 * dimensions, rows.begin() + 1600 * dimensions);
    Pages one(Index(Method::graph, Metric::l2, dimensions, first, make_list({}), pool));
    Pages several = one;
    std::vector<bool> dead(1500);
    for (std::size_t row = 0; row < dead.size(); ++row) dead[row] = row % 7 == 2 || cluster_of[row] == 3;
    ThreadPool alone(1);
    ThreadPool many(4);
    one.grow(second, {dead}, alone);
    several.grow(second, {dead}, many);
    EXPECT_TRUE(one.same_as(several));
}

// Rows come where others died, and those that died later are left out: numbers change, and nothing else.
TEST_F(GraphRepair, LeavesOutWhatDied)
{
    for (const std::int64_t vectors : {0, 1, 2}) {
        const std::vector<float> first(rows.begin(), rows.begin() + 1000 * dimensions);
        const std::vector<float> second(rows.begin() + 1000 * dimensions, rows.begin() + 1300 * dimensions);
        Pages kept(Index(Method::graph, Metric::l2, dimensions, first, make_list({{"vectors", vectors}}), pool));
        std::vector<bool> dead(1000);
        for (std::size_t row = 0; row < 1000; ++row) dead[row] = row % 3 == 1 || row == 0;
        Pages left_out = kept;
        kept.grow(second, {dead}, pool);
        left_out.grow(second, {dead, true}, pool);
        expect_sound(kept, dead);
        expect_sound(left_out, {});
        EXPECT_EQ(left_out.find("neighbours")->shape.rows, 1300 - count_of(dead));
        EXPECT_EQ(left_out.find("edge_changes"), nullptr);
        // Their answers are the same rows.
        dead.resize(1300);
        const std::vector<std::uint64_t> bitmap = Pages::bitmap_of(dead);
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t row = 0; row < dead.size(); ++row)
            if (!dead[row]) numbers.push_back(row);
        SearchBatch batch;
        batch.queries = queries;
        batch.count = query_count;
        batch.k = 10;
        std::vector<std::vector<RowResult>> found;
        left_out.load(pool)->search(batch, found, pool);
        batch.dead = bitmap;
        std::vector<std::vector<RowResult>> as_kept;
        kept.load(pool)->search(batch, as_kept, pool);
        for (std::size_t q = 0; q < query_count; ++q) {
            ASSERT_EQ(found[q].size(), as_kept[q].size());
            for (std::size_t i = 0; i < found[q].size(); ++i)
                ASSERT_EQ(numbers[found[q][i].row], as_kept[q][i].row) << vectors << " " << q;
        }
    }
}

// All rows are replaced some times over, merge by merge. The recall that merges measure agrees with the recall of rows
// that never were in the index.
TEST_F(GraphRepair, RowsThatComeAndGo)
{
    constexpr std::size_t size = 2000;
    constexpr std::size_t step = 200;
    std::mt19937 generator(11);
    const auto draw = [&](std::size_t wanted) {
        std::vector<float> drawn;
        for (std::size_t i = 0; i < wanted; ++i) {
            const std::size_t row = generator() % count;
            for (std::size_t d = 0; d < dimensions; ++d)
                drawn.push_back(rows[row * dimensions + d] + static_cast<float>(generator() % 1000) / 2000);
        }
        return drawn;
    };
    std::vector<float> present = draw(size);
    Pages pages(Index(Method::graph, Metric::l2, dimensions, present, make_list({}), pool));
    std::vector<bool> dead(size);
    Calibration measured;
    for (std::size_t merge = 0; merge < 3 * size / step; ++merge) {
        for (std::size_t i = 0; i < step; ++i) {
            std::size_t row = generator() % dead.size();
            while (dead[row]) row = (row + 1) % dead.size();
            dead[row] = true;
        }
        const std::vector<float> fresh = draw(step);
        const bool leave_out = merge % 4 == 3;
        measured = pages.grow(fresh, {dead, leave_out, true}, pool);
        if (leave_out) {
            std::vector<float> live;
            for (std::size_t row = 0; row < dead.size(); ++row) {
                const auto begin = present.begin() + static_cast<std::ptrdiff_t>(row * dimensions);
                if (!dead[row]) live.insert(live.end(), begin, begin + dimensions);
            }
            present = std::move(live);
            dead.assign(present.size() / dimensions, false);
        }
        present.insert(present.end(), fresh.begin(), fresh.end());
        dead.resize(present.size() / dimensions);
        ASSERT_EQ(pages.find("vectors")->bytes.size(), present.size() * sizeof(float));
        expect_sound(pages, dead);
    }
    std::vector<float> live;
    for (std::size_t row = 0; row < dead.size(); ++row) {
        const auto begin = present.begin() + static_cast<std::ptrdiff_t>(row * dimensions);
        if (!dead[row]) live.insert(live.end(), begin, begin + dimensions);
    }
    const Index fresh_index(Method::graph, Metric::l2, dimensions, live, make_list({}), pool);
    const Found fresh = search(Pages(fresh_index), live, {});
    const Found now = search(pages, present, dead);
    std::printf("replaced three times: recall %.4f, %.0f compared; built anew %.4f, %.0f\n", now.recall, now.compared,
                fresh.recall, fresh.compared);
    EXPECT_GE(now.recall, fresh.recall - 0.01);
    EXPECT_LE(now.compared, 1.25 * fresh.compared);
    const auto recall_at_24 = [](const Calibration& calibration) {
        double recall = 0;
        for (std::uint32_t i = 0; i < calibration.count; ++i)
            if (calibration.points[i].effort <= 24) recall = calibration.points[i].recall[1];
        return recall;
    };
    std::printf("measured: %.4f of %u rows, at the build %.4f\n", recall_at_24(measured), measured.sample,
                recall_at_24(fresh_index.builder->calibration()));
    EXPECT_EQ(measured.sample, 400U);
    EXPECT_NEAR(recall_at_24(measured), now.recall, 0.04);
}

// Recall is measured among the rows that a search can find: with few live rows the curve has no recall at k = 1,000.
TEST_F(GraphRepair, DeadRowsAreNotMeasured)
{
    const std::vector<float> first(rows.begin(), rows.begin() + 1500 * dimensions);
    const std::vector<float> second(rows.begin() + 1500 * dimensions, rows.begin() + 1600 * dimensions);
    Pages pages(Index(Method::graph, Metric::l2, dimensions, first, make_list({}), pool));
    std::vector<bool> dead(1500, true);
    std::fill_n(dead.begin(), 20, false);
    const Calibration measured = pages.grow(second, {dead, false, true}, pool);
    // 120 live rows, of which 24 are searched for.
    ASSERT_GT(measured.count, 0U);
    EXPECT_EQ(measured.sample, 24U);
    for (std::uint32_t i = 0; i < measured.count; ++i) {
        EXPECT_LE(measured.points[i].effort, 96);
        EXPECT_GE(measured.points[i].recall[1], 0);
        EXPECT_LT(measured.points[i].recall[3], 0);
    }
}

TEST_F(GraphRepair, OldestHalf)
{
    std::vector<bool> dead(count);
    std::fill_n(dead.begin(), count / 2, true);
    compare("oldest half", dead);
}

}  // namespace
}  // namespace pgwarp::test

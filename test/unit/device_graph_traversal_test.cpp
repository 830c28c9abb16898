// The traversal that searches on a device run, by groups of threads of the CPU, against a plain best-first search.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <deque>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "graph/launch_config.h"
#include "graph/traversal.h"
#include "host_group.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda::graph;

// Rows on a line, each linked with some near and some far ones: scores are distances on the line.
struct Graph {
    static constexpr std::uint32_t degree = 12;
    std::vector<float> value;
    std::vector<std::uint32_t> neighbours;

    explicit Graph(std::uint32_t rows, unsigned seed) : value(rows), neighbours(rows * degree, no_row_here)
    {
        std::mt19937 random(seed);
        for (float& own : value) own = std::uniform_real_distribution<float>(0, 1000)(random);
        std::vector<std::uint32_t> order(rows);
        for (std::uint32_t i = 0; i < rows; ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return value[a] < value[b]; });
        for (std::uint32_t place = 0; place < rows; ++place) {
            std::set<std::uint32_t> chosen;
            for (std::uint32_t i = 0; i < degree - place % 3; ++i) {
                const std::uint32_t reach = i < 6 ? 20 : rows;
                chosen.insert(order[(place + random() % reach + rows - reach / 2) % rows]);
            }
            chosen.erase(order[place]);
            std::copy(chosen.begin(), chosen.end(), neighbours.begin() + order[place] * degree);
        }
    }
    std::uint32_t rows() const { return static_cast<std::uint32_t>(value.size()); }
};

struct Setting {
    std::uint32_t ef;
    std::uint32_t length;
    std::uint32_t steps;
    bool selected;
    bool deletes;
    std::uint32_t bits;
    std::uint32_t threads;
    std::uint32_t early = most_together;     // while the queue is not full
    std::uint32_t together = most_together;  // of a turn
};

constexpr std::uint32_t kept_starts = 7;

struct Found {
    std::vector<std::uint32_t> rows;
    std::uint32_t scored = 0;
};

std::uint32_t most_batch(std::uint32_t steps)
{
    return std::max(16U, std::min(steps, most_together) * Graph::degree);
}

// The textbook form: a sorted list, all visited rows in a set. The best starts are offered again in the end, some at a
// time, as long as starts that the search did not meet enter the list.
std::vector<std::uint32_t> plain_search(const Graph& graph, float query, const std::vector<std::uint32_t>& starts,
                                        std::uint32_t ef, std::uint32_t most_parents, std::uint32_t again = 0,
                                        std::uint32_t most_early = most_together)
{
    std::vector<Entry> queue;
    std::set<std::uint32_t> visited;
    const auto offer = [&](std::uint32_t row) {
        if (row == no_row_here || !visited.insert(row).second) return;
        queue.push_back(make_entry(std::fabs(graph.value[row] - query), row));
    };
    const auto cut = [&] {
        std::sort(queue.begin(), queue.end(), [](Entry a, Entry b) { return place_of(a) < place_of(b); });
        if (queue.size() > ef) queue.resize(ef);
    };
    for (const std::uint32_t row : starts) offer(row);
    cut();
    std::vector<std::uint32_t> noted;
    for (std::size_t i = 0; i < std::min<std::size_t>(again, queue.size()); ++i) noted.push_back(row_of(queue[i]));
    if (queue.size() > kept_starts) queue.resize(kept_starts);
    // Rows that left the queue may be offered again.
    visited.clear();
    for (const Entry entry : queue) visited.insert(row_of(entry));
    offer(0);
    cut();
    for (std::size_t offered = 0;;) {
        std::vector<std::uint32_t> parents;
        const std::uint32_t early = std::min(most_parents, most_early);
        const std::uint32_t steps = queue.size() < ef ? early : most_parents;
        for (Entry& entry : queue) {
            if (is_expanded(entry) || parents.size() == steps) continue;
            entry |= 1;
            parents.push_back(row_of(entry));
        }
        if (parents.empty()) {
            const std::size_t met = visited.size();
            while (offered < noted.size() && visited.size() == met) {
                const std::size_t end = std::min<std::size_t>(offered + early * Graph::degree, noted.size());
                for (; offered < end; ++offered) offer(noted[offered]);
            }
            cut();
            if (std::all_of(queue.begin(), queue.end(), is_expanded)) break;
        }
        for (const std::uint32_t parent : parents) {
            for (std::uint32_t i = 0; i < Graph::degree; ++i) offer(graph.neighbours[parent * Graph::degree + i]);
        }
        cut();
    }
    std::vector<std::uint32_t> rows;
    for (const Entry entry : queue) rows.push_back(row_of(entry));
    return rows;
}

TraversalShape shape_of(const Setting& setting, std::uint32_t again)
{
    TraversalShape shape;
    shape.ef = setting.ef;
    shape.length = setting.length;
    shape.steps = setting.steps;
    shape.degree = Graph::degree;
    shape.most_batch = most_batch(setting.steps);
    shape.degree_inverse = inverse_of(Graph::degree);
    shape.warps = setting.threads;
    shape.again = again;
    shape.selected = setting.selected;
    shape.deletes = setting.deletes;
    shape.most_early = setting.early;
    shape.most_together = setting.together;
    return shape;
}

std::vector<std::uint32_t> rows_found(const Entry* entries, std::uint32_t ef)
{
    std::vector<std::uint32_t> rows;
    for (std::uint32_t i = 0; i < ef; ++i) {
        if (entries[i] != no_entry) rows.push_back(row_of(entries[i]));
    }
    return rows;
}

// Scores of rows on the line, shared out among the threads of a group.
auto line_scores(const Graph& graph, float query, HostGroup group)
{
    return [&graph, query, group](const std::uint32_t* from, std::uint32_t count, const auto& take) {
        for (std::uint32_t i = group.rank(); i < count; i += group.size()) {
            take(i, make_entry(std::fabs(graph.value[from[i]] - query), from[i]));
        }
    };
}

template <template <class> class Visited, bool wide = true>
Found search(const Graph& graph, float query, const std::vector<std::uint32_t>& starts, const Setting& setting,
             std::uint32_t again = 0)
{
    std::vector<std::uint32_t> words(visited_words(setting.bits));
    const TraversalShape shape = shape_of(setting, again);
    const HostMemory memory(shape);
    Found found;
    HostGroup::run(setting.threads, [&](HostGroup group) {
        const auto scores = line_scores(graph, query, group);
        Visited<HostGroup> visited(group, words.data(), setting.bits);
        visited.clear();
        Traversal<HostGroup, HostMemory, Visited<HostGroup>, decltype(scores), wide> traversal(
            group, shape, memory, visited, scores, graph.neighbours.data());
        traversal.run({starts.data(), static_cast<std::uint32_t>(starts.size()), kept_starts, 0, true});
        if (group.rank() != 0) return;
        found.scored = traversal.counts().scored;
        found.rows = rows_found(traversal.found(), setting.ef);
    });
    EXPECT_TRUE(memory.is_intact());
    return found;
}

std::vector<std::uint32_t> some_starts(const Graph& graph, std::mt19937& random, std::size_t count)
{
    std::set<std::uint32_t> rows;
    while (rows.size() < count) rows.insert(random() % graph.rows());
    std::vector<std::uint32_t> starts(rows.begin(), rows.end());
    starts.push_back(no_row_here);
    return starts;
}

// Groups of threads of the CPU, each with its own memory.
class HostBlockCluster
{
public:
    static constexpr bool shares = true;
    HostBlockCluster(std::uint32_t size, std::uint32_t own, bool shares_scores, const HostMemory& leader,
                     std::barrier<>& all)
        : size_(size), own_(own), shares_scores_(shares_scores), leader_(leader), all_(all)
    {
    }
    std::uint32_t size() const { return size_; }
    std::uint32_t own() const { return own_; }
    bool shares_scores() const { return shares_scores_; }
    const HostMemory& leader() const { return leader_; }
    void begin() const {}
    void arrive() const {}
    void wait() const { all_.arrive_and_wait(); }

private:
    std::uint32_t size_;
    std::uint32_t own_;
    bool shares_scores_;
    const HostMemory& leader_;
    std::barrier<>& all_;
};

// Searches with `groups` groups of threads together; returns the answer and the number of scored rows.
Found search_together(const Graph& graph, float query, const TraversalStarts& starts, const Setting& setting,
                      std::uint32_t again, std::uint32_t groups, bool shares_scores)
{
    TraversalShape shape = shape_of(setting, again);
    shape.most_batch = std::max(shape.most_batch, setting.steps * Graph::degree);
    const std::uint32_t gathered = std::max(groups * shape.length, shape.most_batch);
    std::deque<HostMemory> memories;
    for (std::uint32_t i = 0; i < groups; ++i) memories.emplace_back(shape, gathered);
    std::barrier all(groups * setting.threads);
    Found found;
    std::vector<std::jthread> block_cluster;
    const auto work = [&](std::uint32_t own) {
        std::vector<std::uint32_t> words(visited_words(setting.bits));
        HostGroup::run(setting.threads, [&](HostGroup group) {
            const auto scores = line_scores(graph, query, group);
            VisitedHash<HostGroup> visited(group, words.data(), setting.bits);
            visited.clear();
            Traversal<HostGroup, HostMemory, VisitedHash<HostGroup>, decltype(scores)> traversal(
                group, shape, memories[own], visited, scores, graph.neighbours.data());
            const HostBlockCluster others(groups, own, shares_scores, memories[0], all);
            traversal.run(starts, others);
            if (own > 0) return;
            if (shares_scores) others.wait();
            if (group.rank() == 0) found = {rows_found(traversal.found(), setting.ef), traversal.counts().scored};
        });
    };
    for (std::uint32_t own = 0; own < groups; ++own) block_cluster.emplace_back(work, own);
    block_cluster.clear();
    for (const HostMemory& memory : memories) EXPECT_TRUE(memory.is_intact());
    return found;
}

class Options : public testing::TestWithParam<Setting>
{
};

// Several groups that share the starts, and the links, find the answer of one group. The first row is among the
// starts.
TEST_P(Options, FindTheSameTogether)
{
    const Setting setting = GetParam();
    const Graph graph(3000, 7);
    std::mt19937 random(17);
    constexpr std::uint32_t again = 20;
    for (const std::uint32_t groups : {1U, 2U, 3U}) {
        const float query = std::uniform_real_distribution<float>(0, 1000)(random);
        std::vector<std::uint32_t> starts = some_starts(graph, random, 90);
        starts.pop_back();
        std::erase(starts, 0U);
        starts.insert(starts.begin(), 0);
        const auto count = static_cast<std::uint32_t>(starts.size());
        const auto expected = plain_search(graph, query, starts, setting.ef, setting.steps, again, setting.early);
        for (const bool all_rows : {true, false}) {
            for (const bool shares_scores : {false, true}) {
                if (shares_scores && (groups == 1 || setting.selected)) continue;
                if (!shares_scores && groups > 1 && !all_rows) continue;
                const Found found =
                    search_together(graph, query, {starts.data(), count, kept_starts, 0, false, all_rows}, setting,
                                    again, groups, shares_scores);
                EXPECT_EQ(found.rows, expected) << groups << " groups" << (shares_scores ? " that help" : "");
                EXPECT_GE(found.scored, found.rows.size());
            }
        }
    }
}

// The answer is that of the plain search for any visited table that forgets rows, and for any number of threads.
TEST_P(Options, FindWhatAPlainSearchFinds)
{
    const Setting setting = GetParam();
    const Graph graph(3000, 7);
    std::mt19937 random(11);
    const int queries = setting.threads > 1 ? 6 : 40;
    for (int i = 0; i < queries; ++i) {
        const float query = std::uniform_real_distribution<float>(0, 1000)(random);
        const std::vector<std::uint32_t> starts = some_starts(graph, random, 5 + i);
        const std::vector<std::uint32_t> expected =
            plain_search(graph, query, starts, setting.ef, setting.steps, 0, setting.early);
        EXPECT_EQ(search<VisitedHash>(graph, query, starts, setting).rows, expected) << "query " << i;
        if (setting.steps > setting.together) continue;
        const Found narrow = search<VisitedHash, false>(graph, query, starts, setting);
        EXPECT_EQ(narrow.rows, expected) << "query " << i << ", turns at once";
    }
}

// In a graph of islands no edges lead to the nearest rows: seeds on their island find them.
TEST_P(Options, ComeToWhereOnlySeedsAre)
{
    const Setting setting = GetParam();
    Graph graph(3000, 7);
    for (std::uint32_t row = 0; row < graph.rows(); ++row) {
        for (std::uint32_t i = 0; i < Graph::degree; ++i) {
            std::uint32_t& to = graph.neighbours[row * Graph::degree + i];
            if (to != no_row_here && to % 16 != row % 16) to = no_row_here;
        }
    }
    std::mt19937 random(13);
    const int queries = setting.threads > 1 ? 3 : 20;
    std::size_t better = 0;
    for (int i = 0; i < queries; ++i) {
        const float query = std::uniform_real_distribution<float>(0, 1000)(random);
        const std::vector<std::uint32_t> starts = some_starts(graph, random, 300);
        const Found found = search<VisitedHash>(graph, query, starts, setting, 40);
        EXPECT_EQ(found.rows, plain_search(graph, query, starts, setting.ef, setting.steps, 40, setting.early))
            << "query " << i;
        better += found.rows != search<VisitedHash>(graph, query, starts, setting).rows ? 1 : 0;
    }
    if (setting.ef >= 50) {
        EXPECT_GT(better, 0U);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Traversal, Options,
    testing::Values(Setting{50, 50, 8, false, false, 8, 4, 4, 8}, Setting{50, 50, 8, false, false, 8, 3, 4, 4},
                    Setting{60, 60, 32, false, false, 9, 4, 4, 8}, Setting{16, 16, 1, false, false, 12, 1},
                    Setting{16, 16, 1, false, false, 12, 4}, Setting{1, 1, 1, false, false, 10, 3},
                    Setting{50, 50, 1, false, false, 7, 1}, Setting{50, 50, 1, false, false, 5, 3},
                    Setting{50, 50, 4, false, false, 8, 4}, Setting{50, 50, 4, false, false, 4, 1},
                    Setting{33, 33, 3, true, false, 8, 4}, Setting{33, 33, 3, true, true, 7, 1},
                    Setting{64, 64, 1, true, true, 8, 4}, Setting{20, 100, 1, false, false, 11, 2},
                    Setting{200, 200, 8, true, true, 9, 5}, Setting{120, 120, 32, false, false, 10, 3},
                    Setting{120, 120, 20, false, false, 6, 4}, Setting{60, 60, 13, true, true, 9, 2}));

TEST(Traversal, TheFiltersLoseLittle)
{
    const Graph graph(3000, 7);
    std::mt19937 random(5);
    std::size_t same_bloom = 0;
    std::size_t same_cuckoo = 0;
    std::size_t all = 0;
    for (int i = 0; i < 50; ++i) {
        const float query = std::uniform_real_distribution<float>(0, 1000)(random);
        const std::vector<std::uint32_t> starts = some_starts(graph, random, 8);
        const std::vector<std::uint32_t> wanted = plain_search(graph, query, starts, 40, 1);
        const auto shared = [&](std::vector<std::uint32_t> rows) {
            std::size_t count = 0;
            for (const std::uint32_t row : rows) count += std::count(wanted.begin(), wanted.end(), row);
            return count;
        };
        same_bloom += shared(search<VisitedBloom>(graph, query, starts, {40, 40, 1, false, false, 9, 1}).rows);
        same_cuckoo += shared(search<VisitedCuckoo>(graph, query, starts, {40, 40, 1, true, true, 8, 1}).rows);
        all += wanted.size();
    }
    EXPECT_GT(same_bloom, all * 98 / 100);
    EXPECT_GT(same_cuckoo, all * 98 / 100);
}

constexpr int hash = static_cast<int>(VisitedKind::hash);
constexpr int bloom = static_cast<int>(VisitedKind::bloom);
constexpr int cuckoo = static_cast<int>(VisitedKind::cuckoo);

// The settings of a session, as src/methods/graph/description.cpp names them.
struct GraphChoices {
    int visited = -1;  // VisitedKind; -1: usual
    bool bounded_queue = true;
    bool selected_insertion = false;
    bool visited_deletion = false;
    int multi_query = 0;
    int multi_step = 0;

    ParameterList settings() const
    {
        ParameterList settings;
        if (visited >= 0) settings.set("visited", visited);
        if (!bounded_queue) settings.set("unbounded_queue", 1);
        if (selected_insertion) settings.set("selected_insertion", 1);
        if (visited_deletion) settings.set("visited_deletion", 1);
        if (multi_query > 0) settings.set("multi_query", multi_query);
        if (multi_step > 0) settings.set("multi_step", multi_step);
        return settings;
    }
};

class Choices : public testing::TestWithParam<GraphChoices>
{
protected:
    Choices()
    {
        limits_.rows = 3000;
        limits_.degree = Graph::degree;
        limits_.seeds = 100;
        limits_.row_bytes = 256;
        limits_.query_bytes = 512;
        limits_.multiprocessors = 132;
        limits_.shared_bytes = 227 << 10;
    }
    LaunchConfig shape_of(const GraphChoices& chosen) const
    {
        return launch_config(chosen.settings(), 40, 10, 1000, limits_);
    }

    DeviceLimits limits_;
};

// From a session's settings to the kernels' parameters ...
TEST_P(Choices, ReachTheShape)
{
    const GraphChoices chosen = GetParam();
    const LaunchConfig shape = shape_of(chosen);
    const LaunchConfig usual = shape_of({});
    const bool named = chosen.visited >= 0;
    EXPECT_EQ(shape.visited, named ? static_cast<VisitedKind>(chosen.visited) : usual.visited);
    EXPECT_EQ(shape.traversal.length, chosen.bounded_queue ? 40U : 160U);
    EXPECT_EQ(shape.traversal.deletes, chosen.visited_deletion && chosen.visited != bloom);
    EXPECT_EQ(shape.traversal.selected, chosen.selected_insertion || chosen.visited_deletion);
    EXPECT_EQ(shape.traversal.steps,
              chosen.multi_step > 0 ? static_cast<std::uint32_t>(chosen.multi_step) : usual.traversal.steps);
    if (chosen.multi_query > 1) {
        EXPECT_EQ(shape.groups, static_cast<std::uint32_t>(chosen.multi_query));
        EXPECT_EQ(shape.lanes, 32U / shape.groups);
    } else {
        EXPECT_EQ(shape.groups, 1U);
    }
}

// ... and from these to the answer: with exact tables that of a plain search, with filters nearly the same.
TEST_P(Choices, FindWhatAPlainSearchFinds)
{
    const LaunchConfig shape = shape_of(GetParam());
    const TraversalShape& traversal = shape.traversal;
    const Setting setting{
        traversal.ef, traversal.length, traversal.steps, traversal.selected, traversal.deletes, shape.visited_bits, 1};
    const Graph graph(3000, 7);
    std::mt19937 random(11);
    std::size_t shared = 0;
    std::size_t all = 0;
    for (int i = 0; i < 12; ++i) {
        const float query = std::uniform_real_distribution<float>(0, 1000)(random);
        const std::vector<std::uint32_t> starts = some_starts(graph, random, 8);
        const std::vector<std::uint32_t> wanted = plain_search(graph, query, starts, traversal.ef, traversal.steps);
        const Found found = shape.visited == VisitedKind::hash ? search<VisitedHash>(graph, query, starts, setting)
                            : shape.visited == VisitedKind::bloom
                                ? search<VisitedBloom>(graph, query, starts, setting)
                                : search<VisitedCuckoo>(graph, query, starts, setting);
        if (shape.visited == VisitedKind::hash) {
            EXPECT_EQ(found.rows, wanted) << "query " << i;
        }
        for (const std::uint32_t row : found.rows) shared += std::count(wanted.begin(), wanted.end(), row);
        all += wanted.size();
    }
    EXPECT_GE(shared, all * 95 / 100);
}

INSTANTIATE_TEST_SUITE_P(
    Traversal, Choices,
    testing::Values(GraphChoices{}, GraphChoices{hash, true, false, false, 1, 1},
                    GraphChoices{hash, false, false, false, 0, 0}, GraphChoices{hash, true, true, false, 2, 4},
                    GraphChoices{hash, true, false, true, 4, 3}, GraphChoices{bloom, true, false, false, 0, 0},
                    GraphChoices{bloom, true, true, false, 0, 2}, GraphChoices{bloom, true, false, true, 0, 1},
                    GraphChoices{cuckoo, true, true, false, 0, 1}, GraphChoices{cuckoo, false, false, true, 4, 16}));

}  // namespace
}  // namespace pgwarp::test

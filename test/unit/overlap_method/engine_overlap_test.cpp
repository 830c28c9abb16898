// The life of an index of lists, texts, sets, attributes or bags, through the engine's protocol and mirrors: build,
// insert, delete, search, continue, merge, crash. The engine's answers are compared with a plain scan of the test's
// rows.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "bag_fixture.h"
#include "overlap_method/overlap_client.h"
#include "part_fixture.h"
#include "text_fixture.h"

namespace pgwarp::test
{
namespace
{

constexpr std::uint32_t range = 300;
constexpr std::size_t indexed = 700;
constexpr std::size_t inserted = 900;

// Lists of integers are rows of the method for tests, the others of matchcount.
struct Kind {
    const char* name;
    ElementType element;
    Metric metric = Metric{};

    bool is_of_integers() const { return element == ElementType::list || element == ElementType::weighted_list; }
};

IndexShape shape_of(const Kind& kind, std::uint32_t words = 0)
{
    if (kind.is_of_integers()) return list_shape(kind.element == ElementType::weighted_list, words);
    IndexShape shape{};
    shape.method = Method::matchcount;
    shape.element = kind.element;
    shape.metric = static_cast<std::uint8_t>(kind.metric);
    return shape;
}

OwnedRows random_rows_of(const Kind& kind, std::size_t count, std::size_t most, unsigned seed)
{
    if (kind.element == ElementType::text) return random_texts(count, most, seed);
    if (is_any_set(kind.element)) return random_sets(count, most, range, seed);
    if (kind.element == ElementType::attribute_set) return random_attribute_sets(count, most, 9, seed);
    if (kind.element == ElementType::bag) return random_bags(count, most, range, seed);
    return random_lists(count, most, range, kind.element == ElementType::weighted_list, seed);
}

OwnedRows random_queries_of(const Kind& kind, std::size_t count, std::size_t most, unsigned seed)
{
    if (kind.element == ElementType::attribute_set) return random_queries(count, most, most, 9, seed);
    if (kind.element == ElementType::bag) return random_bag_queries(count, most, range, seed);
    return random_rows_of(kind, count, most, seed);
}

double distance_of(const Kind& kind, const RowView& query, const RowView& rows, std::size_t row)
{
    if (kind.element == ElementType::text) return plain_distance(text_of(query, 0), text_of(rows, row));
    if (kind.element == ElementType::attribute_set)
        return plain_overlap(query_of(query.list(0)), attributes_of(rows.list(row)));
    if (kind.element == ElementType::bag) return plain_bm25(weights_of(query.list(0)), bag_of(rows.list(row)));
    if (!is_any_set(kind.element)) return overlap_distance(query, 0, rows, row);
    const Set a = set_of(query.list(0));
    const Set b = set_of(rows.list(row));
    return kind.metric == Metric::overlap ? plain_overlap(a, b) : plain_set_jaccard(a, b);
}

struct Live {
    double distance;
    std::uint64_t place;
    Tid tid;
};

// An index of lists with its pages and logs, as a backend has them.
class ListTable
{
public:
    explicit ListTable(const Kind& kind_of_rows)
        : kind(kind_of_rows),
          rows_(random_rows_of(kind, indexed + inserted, 12, 3)),
          tids_(numbered_tids(0, indexed + inserted))
    {
        index.shape = shape_of(kind, range);
        index.key = {1, 2, 3, -1, 77, MirrorDevice::best, 0};
    }

    RowView all() const { return rows_.view(); }
    void create(EngineClient& client) { built = build_lists(client, index, tids_, all().slice(0, indexed)); }
    void load(EngineClient& client) { pgwarp::load(client, index, built); }

    // Rows [first, last) of those to be inserted, to the logs in turns: one at a time, or in larger messages.
    void insert(std::size_t first, std::size_t last)
    {
        for (std::size_t row = indexed + first; row < indexed + last; ++row)
            logs[row / 40 % delta_log_count].push_back(row);
    }
    // Sends the entries of the logs that the mirror lacks.
    void push(EngineClient& client, std::size_t step)
    {
        for (std::uint32_t log = 0; log < delta_log_count; ++log) {
            for (std::size_t at = pushed[log]; at < logs[log].size(); at += step) {
                OwnedRows rows;
                std::vector<Tid> tids;
                for (std::size_t i = at; i < std::min(at + step, logs[log].size()); ++i) {
                    rows.append(all().row(logs[log][i]));
                    tids.push_back(tids_[logs[log][i]]);
                }
                send_list_delta(client, index, log, at, tids, rows.view());
            }
            pushed[log] = logs[log].size();
        }
    }
    void kill(EngineClient& client, const std::set<std::size_t>& rows)
    {
        dead.insert(rows.begin(), rows.end());
        push_tombstones(client);
    }
    void push_tombstones(EngineClient& client)
    {
        LoadTombstonesRequest request{};
        request.key = index.key;
        request.version = ++version;
        std::vector<std::uint64_t> words((index_rows.size() + 63) / 64);
        for (std::size_t i = 0; i < index_rows.size(); ++i) {
            if (dead.contains(index_rows[i])) words[i / 64] |= std::uint64_t{1} << (i % 64);
        }
        request.count = static_cast<std::uint32_t>(words.size());
        client.call(MessageType::load_tombstones, EngineClient::bytes_of(request), EngineClient::bytes_of_all(words));
        for (std::uint32_t log = 0; log < delta_log_count; ++log) {
            std::vector<std::uint64_t> entries;
            for (std::size_t i = 0; i < logs[log].size(); ++i) {
                if (dead.contains(logs[log][i])) entries.push_back(i);
            }
            request.source = 1 + log;
            request.count = static_cast<std::uint32_t>(entries.size());
            request.final = log + 1 == delta_log_count;
            client.call(MessageType::load_tombstones, EngineClient::bytes_of(request),
                        EngineClient::bytes_of_all(entries));
        }
    }

    // All live rows in order.
    std::vector<Live> truth(const RowView& query) const
    {
        std::vector<Live> live;
        const auto add = [&](std::size_t row, std::uint64_t place) {
            if (!dead.contains(row)) live.push_back({distance_of(kind, query, all(), row), place, tids_[row]});
        };
        for (std::size_t i = 0; i < index_rows.size(); ++i) add(index_rows[i], i);
        for (std::uint32_t log = 0; log < delta_log_count; ++log) {
            for (std::size_t i = 0; i < logs[log].size(); ++i) add(logs[log][i], delta_ordinal(log, i));
        }
        std::sort(live.begin(), live.end(), [](const Live& a, const Live& b) {
            return a.distance != b.distance ? a.distance < b.distance : a.place < b.place;
        });
        return live;
    }
    SearchRequest request(const RowView& queries, std::uint32_t k) const
    {
        SearchRequest asked = list_request(index, queries, k);
        for (std::uint32_t log = 0; log < delta_log_count; ++log) asked.delta_end[log] = logs[log].size();
        asked.tombstone_version = version;
        return asked;
    }

    // As a merge does it: the engine makes arrays of live delta rows, which are appended to those of the index. Another
    // generation, whose dead rows stay dead.
    void merge(EngineClient& client)
    {
        OwnedRows delta;
        std::vector<Tid> tids;
        for (auto& log : logs) {
            for (const std::size_t row : log) {
                if (dead.contains(row)) continue;
                delta.append(all().row(row));
                tids.push_back(tids_[row]);
                index_rows.push_back(row);
            }
            log.clear();
        }
        const BuiltIndex made = build_lists(client, index, tids, delta.view(), BuildKind::extend);
        ASSERT_EQ(made.arrays.size(), built.arrays.size());
        const std::uint64_t old_rows = built.reply.rows;
        for (std::size_t i = 0; i < made.arrays.size(); ++i) append_array(i, made);
        built.reply.rows = old_rows + made.reply.rows;
        // Rows come in order of addresses from each merge.
        std::sort(index_rows.begin() + static_cast<std::ptrdiff_t>(old_rows), index_rows.end());
        pushed.fill(0);
        index.key.generation += 1;
        version = 0;
    }

    Kind kind;
    TestIndex index;
    BuiltIndex built;
    std::array<std::vector<std::size_t>, delta_log_count> logs;  // rows
    std::array<std::size_t, delta_log_count> pushed{};
    std::vector<std::size_t> index_rows = [] {
        std::vector<std::size_t> rows(indexed);
        for (std::size_t i = 0; i < indexed; ++i) rows[i] = i;
        return rows;
    }();
    std::set<std::size_t> dead;
    std::uint64_t version = 0;

private:
    void append_array(std::size_t number, const BuiltIndex& made)
    {
        ArrayShape& shape = built.arrays[number];
        std::vector<std::byte>& bytes = built.bytes[number];
        std::vector<std::byte> more = made.bytes[number];
        if (std::strcmp(shape.name, array_list_offsets) == 0) {
            const std::size_t count = more.size() / sizeof(std::uint64_t);
            std::uint64_t words = 0;
            std::memcpy(&words, bytes.data() + bytes.size() - sizeof(words), sizeof(words));
            auto* offsets = reinterpret_cast<std::uint64_t*>(more.data());
            for (std::size_t i = 0; i < count; ++i) offsets[i] += words;
            more.erase(more.begin(), more.begin() + sizeof(std::uint64_t));  // where the words go on
            shape.rows += count - 1;
        } else {
            shape.rows += made.arrays[number].rows;
        }
        bytes.insert(bytes.end(), more.begin(), more.end());
    }

    OwnedRows rows_;
    std::vector<Tid> tids_;
};

void expect_results(const SearchOutcome& outcome, std::size_t query, std::size_t first, const std::vector<Live>& truth,
                    std::size_t k)
{
    const std::size_t wanted = std::min(k, truth.size());
    ASSERT_EQ(outcome.counts.at(query), wanted);
    for (std::size_t i = 0; i < wanted; ++i) {
        ASSERT_EQ(outcome.results[first + i].distance, truth[i].distance) << i;
        ASSERT_EQ(outcome.places[first + i], truth[i].place) << i;
        ASSERT_EQ(outcome.results[first + i].tid, truth[i].tid) << i;
    }
}

// Searches for some lists, in one batch, and expects the answers of the plain scan.
void expect_truth(EngineClient& client, const ListTable& table, std::uint32_t k, unsigned seed = 11)
{
    const OwnedRows queries = random_queries_of(table.kind, 9, 20, seed);
    const SearchOutcome outcome = search_lists(client, table.request(queries.view(), k), queries.view());
    ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
    std::size_t first = 0;
    for (std::size_t q = 0; q < queries.count(); ++q) {
        expect_results(outcome, q, first, table.truth(queries.view().row(q)), k);
        first += outcome.counts.at(q);
    }
}

// A query's rows one page after the other, until none is left.
void expect_all_pages(EngineClient& client, const ListTable& table, std::uint32_t k)
{
    const OwnedRows query = random_queries_of(table.kind, 1, 20, 5);
    const std::vector<Live> truth = table.truth(query.view());
    SearchRequest request = table.request(query.view(), k);
    request.mode = SearchMode::continuation;
    request.after = {-std::numeric_limits<double>::infinity(), 0};
    std::size_t seen = 0;
    while (true) {
        const SearchOutcome page = search_lists(client, request, query.view());
        ASSERT_EQ(page.reply.status, SearchStatus::answered);
        if (page.results.empty()) break;
        ASSERT_LE(seen + page.results.size(), truth.size());
        expect_results(page, 0, 0, std::vector<Live>(truth.begin() + static_cast<std::ptrdiff_t>(seen), truth.end()),
                       k);
        seen += page.results.size();
        request.after = page.reply.last;
    }
    EXPECT_EQ(seen, truth.size());
}

class OverlapMethod : public testing::TestWithParam<Kind>
{
};

// A table whose index is built and loaded.
class LoadedTable : public OverlapMethod
{
protected:
    LoadedTable()
    {
        table.create(client);
        table.load(client);
    }
    void add_part()
    {
        ThreadPool pool(2);
        const auto mirror = server.engine().residency.find_resident(table.index.key);
        ASSERT_NE(mirror, nullptr);
        mirror->add_part(pool, [](std::uint64_t bytes) { EXPECT_GT(bytes, 0U); });
        EXPECT_EQ(mirror->snapshot()->plain_rows(), 0U);
        EXPECT_GT(mirror->memory_bytes(), mirror->stored_bytes());
    }

    TestServer server;
    EngineClient client{server.path()};
    ListTable table{GetParam()};
};

TEST_P(LoadedTable, BuildsAndSearches)
{
    EXPECT_EQ(table.built.reply.rows, indexed);
    for (const std::uint32_t k : {1U, 10U, 300U, 2000U}) expect_truth(client, table, k);
    expect_all_pages(client, table, 64);
}

TEST_P(LoadedTable, FindsInsertedRowsAndLeavesDeadOnesOut)
{
    table.insert(0, 90);
    table.push(client, 1);
    expect_truth(client, table, 10);
    table.insert(90, inserted);
    table.push(client, 37);
    expect_truth(client, table, 25);
    table.kill(client, {0, 3, indexed - 1, indexed, indexed + 41, indexed + inserted - 1});
    for (const std::uint32_t k : {1U, 25U, 5000U}) expect_truth(client, table, k);
    expect_all_pages(client, table, 200);
}

TEST_P(LoadedTable, SearchesPartsOfItsDelta)
{
    table.insert(0, 500);
    table.push(client, 20);
    add_part();
    expect_truth(client, table, 25);
    table.kill(client, {2, indexed + 7, indexed + 8, indexed + 450});
    table.insert(500, inserted);
    table.push(client, 20);
    expect_truth(client, table, 25);
    add_part();
    expect_truth(client, table, 3000);
    expect_all_pages(client, table, 100);
}

TEST_P(LoadedTable, MergesItsDelta)
{
    table.insert(0, 500);
    table.push(client, 20);
    table.kill(client, {2, indexed + 7, indexed + 450});
    table.merge(client);
    EXPECT_EQ(table.built.reply.rows, indexed + 500 - 2);
    table.load(client);
    table.push_tombstones(client);
    expect_truth(client, table, 40);
    table.insert(500, inserted);
    table.push(client, 100);
    expect_truth(client, table, 40);
    expect_all_pages(client, table, 300);
}

TEST_P(LoadedTable, SearchesManyIndexesAtOnce)
{
    ListTable other(GetParam());
    other.create(client);
    other.index.key.relation = 4;
    other.load(client);
    other.insert(0, 30);
    other.push(client, 3);
    const OwnedRows queries = random_queries_of(GetParam(), 2, 20, 21);
    SearchIndexesRequest request{};
    request.index_count = 2;
    request.query_count = 2;
    request.form = block_of(queries.view()).form;
    std::vector<IndexTarget> targets(2);
    targets[0].key = table.index.key;
    targets[1].key = other.index.key;
    for (IndexTarget& target : targets) target.k = 5;
    const ClientReply reply = client.call(MessageType::search_indexes, EngineClient::bytes_of(request),
                                          EngineClient::bytes_of_all(targets), block_bytes(queries.view()));
    const auto counts = reply.array_at<std::uint32_t>(sizeof(SearchIndexesReply) + 2 * sizeof(IndexAnswer), 4);
    EXPECT_EQ(counts, std::vector<std::uint32_t>(4, 5));
    const auto results =
        reply.array_at<Result>(sizeof(SearchIndexesReply) + 2 * sizeof(IndexAnswer) + 4 * sizeof(std::uint32_t), 20);
    for (std::size_t i = 0; i < 20; ++i) {
        const ListTable& asked = i < 10 ? table : other;
        const Live expected = asked.truth(queries.view().row(i / 5 % 2)).at(i % 5);
        EXPECT_EQ(results[i].tid, expected.tid) << i;
        EXPECT_EQ(results[i].distance, expected.distance) << i;
    }
}

// A server in a process of its own, to be killed.
class ServerProcess
{
public:
    ServerProcess()
    {
        int ends[2];
        if (::pipe(ends) != 0) throw std::runtime_error("pipe");
        child_ = ::fork();
        if (child_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            const TestServer server;
            const std::string path = server.path() + "\n";
            if (::write(ends[1], path.data(), path.size()) > 0) {
                while (true) ::pause();
            }
            ::_exit(1);
        }
        ::close(ends[1]);
        char letter = 0;
        while (::read(ends[0], &letter, 1) == 1 && letter != '\n') path_ += letter;
        ::close(ends[0]);
    }
    ~ServerProcess()
    {
        kill();
        std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
    }
    const std::string& path() const { return path_; }
    void kill()
    {
        if (child_ <= 0) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        child_ = -1;
    }

private:
    pid_t child_ = -1;
    std::string path_;
};

TEST_P(OverlapMethod, OutlivesTheEngine)
{
    ListTable table(GetParam());
    {
        ServerProcess server;
        EngineClient client(server.path());
        table.create(client);
        table.load(client);
        table.insert(0, 300);
        table.push(client, 10);
        table.kill(client, {1, indexed + 2});
        expect_truth(client, table, 30);
        server.kill();
        EXPECT_THROW(expect_truth(client, table, 30), ConnectionLost);
    }
    // Another engine has no mirror: everything is loaded from pages again.
    ServerProcess server;
    EngineClient client(server.path());
    const OwnedRows query = random_queries_of(GetParam(), 1, 20, 5);
    EXPECT_EQ(search_lists(client, table.request(query.view(), 3), query.view()).reply.status, SearchStatus::need_load);
    table.load(client);
    table.pushed.fill(0);
    table.push(client, 1000);
    table.push_tombstones(client);
    expect_truth(client, table, 30);
    expect_all_pages(client, table, 500);
}

TEST_P(OverlapMethod, HoldsNothing)
{
    TestServer server;
    EngineClient client(server.path());
    TestIndex index;
    index.shape = shape_of(GetParam());
    index.key = {1, 2, 3, -1, 5, MirrorDevice::best, 0};
    const OwnedRows none = random_rows_of(GetParam(), 0, 1, 1);
    const BuiltIndex built = build_lists(client, index, {}, none.view());
    EXPECT_EQ(built.reply.rows, 0U);
    load(client, index, built);
    const OwnedRows query = random_queries_of(GetParam(), 1, 5, 2);
    EXPECT_TRUE(search_lists(client, list_request(index, query.view(), 4), query.view()).results.empty());
    // Lists without words are rows like others.
    const OwnedRows empty = random_rows_of(GetParam(), 3, 0, 1);
    send_list_delta(client, index, 0, 0, numbered_tids(0, 3), empty.view());
    EXPECT_EQ(search_lists(client, list_request(index, query.view(), 4), query.view()).results.size(), 3U);
}

std::string kind_of_lists(const testing::TestParamInfo<Kind>& kind)
{
    return kind.param.name;
}
const auto kinds = testing::Values(
    Kind{"plain", ElementType::list}, Kind{"weighted", ElementType::weighted_list},
    Kind{"text", ElementType::text, Metric::edit}, Kind{"overlap", ElementType::set, Metric::overlap},
    Kind{"jaccard", ElementType::set, Metric::set_jaccard},
    Kind{"attributes", ElementType::attribute_set, Metric::overlap},
    Kind{"minhash", ElementType::minhash_set, Metric::set_jaccard}, Kind{"bm25", ElementType::bag, Metric::bm25});
INSTANTIATE_TEST_SUITE_P(Lists, OverlapMethod, kinds, kind_of_lists);
INSTANTIATE_TEST_SUITE_P(Lists, LoadedTable, kinds, kind_of_lists);

RowView one_row(const Words& words, const std::uint64_t (&offsets)[2])
{
    RowView row;
    row.count = 1;
    row.offsets = offsets;
    row.words = words.data();
    return row;
}

// Rows and queries that no backend makes are refused, and the engine goes on.
class MalformedParts : public OverlapMethod
{
protected:
    MalformedParts()
    {
        table.create(client);
        table.load(client);
    }
    void expect_refused(const Words& words, bool row, bool query)
    {
        const std::uint64_t offsets[2] = {0, words.size()};
        const RowView view = one_row(words, offsets);
        if (row) {
            EXPECT_THROW(send_list_delta(client, table.index, 0, 0, numbered_tids(0, 1), view), EngineError);
            EXPECT_THROW(build_lists(client, table.index, numbered_tids(0, 1), view), EngineError);
        }
        if (query) {
            EXPECT_THROW(search_lists(client, table.request(view, 3), view), EngineError);
        }
    }

    TestServer server;
    EngineClient client{server.path()};
    ListTable table{GetParam()};
};

TEST_P(MalformedParts, AreRefused)
{
    const bool sets = is_any_set(GetParam().element);
    expect_refused({0, 1, 0, 5, 0}, true, true);
    expect_refused(Words(max_list_words + 4), true, true);
    expect_refused({0, 9, 0, 1, 0, 8, 0, 1}, true, sets);
    expect_refused({0, 9, 0, 1, 0, 9, 0, 2}, true, sets);
    if (!sets) {
        expect_refused(words_of(AttributeQuery{{1, {{3, 2}}}}), false, true);
        expect_refused(words_of(AttributeQuery{{1, {{2, 4}, {3, 5}}}}), false, true);
        expect_refused({0, 1, is_range | 2, 0, 1, 0, 2}, false, true);
    }
    expect_truth(client, table, 10);
}

INSTANTIATE_TEST_SUITE_P(Lists, MalformedParts,
                         testing::Values(Kind{"overlap", ElementType::set, Metric::overlap},
                                         Kind{"jaccard", ElementType::set, Metric::set_jaccard},
                                         Kind{"minhash", ElementType::minhash_set, Metric::set_jaccard},
                                         Kind{"attributes", ElementType::attribute_set, Metric::overlap}),
                         kind_of_lists);

// Statistics of terms in rows of the index, in those of a part, and in those that no part holds.
class Terms : public LoadedTable
{
protected:
    void expect_counts(std::size_t rows)
    {
        expect_counts_of({1, 0, {{0, 1.0}, {1, 1.0}, {7, 2.0}, {range + 5, 1.0}}}, rows);
        // A query of many terms is left to a worker.
        BagOfWeights many{1, 0, {}};
        for (std::uint64_t term = 0; term < 16383; ++term) many.weights[term] = 1;
        expect_counts_of(many, rows);
    }
    void expect_counts_of(const BagOfWeights& weights, std::size_t rows)
    {
        const OwnedRows query = rows_of_parts(std::vector<BagOfWeights>{weights});
        SearchRequest request = table.request(query.view(), 1);
        request.mode = SearchMode::term_counts;
        const ClientReply reply =
            client.call(MessageType::search, EngineClient::bytes_of(request), block_bytes(query.view()));
        ASSERT_EQ(reply.as<SearchReply>().status, SearchStatus::answered);
        std::vector<std::uint64_t> wanted(2 + weights.weights.size());
        wanted[0] = rows;
        for (std::size_t row = 0; row < rows; ++row) {
            std::size_t number = 2;
            const Bag bag = bag_of(table.all().list(row));
            for (const auto& [term, frequency] : bag) wanted[1] += frequency;
            for (const auto& [term, weight] : weights.weights) wanted[number++] += bag.contains(term) ? 1 : 0;
        }
        EXPECT_GT(wanted[2], 0U);
        EXPECT_EQ(reply.array_at<std::uint64_t>(sizeof(SearchReply), wanted.size()), wanted);
        EXPECT_EQ(reply.payload.size(), sizeof(SearchReply) + wanted.size() * sizeof(std::uint64_t));
    }
};

TEST_P(Terms, AreCounted)
{
    expect_counts(indexed);
    table.insert(0, 500);
    table.push(client, 20);
    expect_counts(indexed + 500);
    add_part();
    expect_counts(indexed + 500);
    table.insert(500, inserted);
    table.push(client, 20);
    expect_counts(indexed + inserted);
    table.merge(client);
    table.load(client);
    expect_counts(indexed + inserted);
}

INSTANTIATE_TEST_SUITE_P(Lists, Terms, testing::Values(Kind{"bm25", ElementType::bag, Metric::bm25}), kind_of_lists);

TEST_P(MalformedParts, HaveNoTerms)
{
    const OwnedRows query = random_queries_of(GetParam(), 1, 5, 1);
    SearchRequest request = table.request(query.view(), 1);
    request.mode = SearchMode::term_counts;
    EXPECT_THROW(client.call(MessageType::search, EngineClient::bytes_of(request), block_bytes(query.view())),
                 EngineError);
    expect_truth(client, table, 10);
}

// Attributes travel with rows, are sorted with them, and come back as an array that mirrors hold.
TEST(Attributes, AreStoredInRowOrderAndHeld)
{
    TestServer server;
    EngineClient client(server.path());
    TestIndex index;
    index.shape = list_shape(true, 0, 2);
    index.key = {1, 2, 3, -1, 6, MirrorDevice::best, 0};
    constexpr std::size_t rows = 250;
    const OwnedRows lists = random_lists(rows + 3, 6, 50, true, 4);
    std::vector<std::uint64_t> attributes;
    for (std::uint64_t i = 0; i < rows + 3; ++i) attributes.insert(attributes.end(), {i, ~i});
    RowView view = lists.view();
    view.attribute_count = 2;
    view.attributes = attributes.data();
    const BuiltIndex built = build_lists(client, index, numbered_tids(0, rows), view.slice(0, rows));
    ASSERT_STREQ(built.arrays.at(2).name, array_attributes);
    load(client, index, built);
    const auto mirror = server.engine().residency.find_resident(index.key);
    ASSERT_NE(mirror, nullptr);
    EXPECT_TRUE(std::equal(mirror->attributes().begin(), mirror->attributes().end(), attributes.begin(),
                           attributes.begin() + 2 * rows));
    send_list_delta(client, index, 1, 0, numbered_tids(rows, 3), view.slice(rows, 3));
    const auto snapshot = mirror->snapshot();
    std::size_t seen = 0;
    for_each_chunk(snapshot->logs[1], 0, [&](std::uint64_t, const Tid*, const RowView& delta) {
        for (std::size_t i = 0; i < delta.count; ++i, ++seen) {
            EXPECT_EQ(delta.row(i).attributes[0], rows + seen);
            EXPECT_EQ(delta.row(i).attributes[1], ~(rows + seen));
        }
    });
    EXPECT_EQ(seen, 3U);
    EXPECT_THROW(send_list_delta(client, index, 1, 3, numbered_tids(0, 1), lists.view().slice(0, 1)), EngineError);
}

TEST(RegisteredMethod, IsKnownForAsLongAsItIsRegistered)
{
    constexpr auto number = static_cast<Method>(13);
    MethodFactory factory = overlap_factory();
    MethodDescription description = overlap_description;
    factory.method = description.method = number;
    description.name = "another";
    const std::size_t known = method_descriptions().size();
    {
        const RegisteredMethod registered(factory, description);
        EXPECT_EQ(find_method(number), &factory);
        EXPECT_EQ(find_description(number), &description);
        EXPECT_EQ(find_description("another"), &description);
        EXPECT_EQ(method_descriptions().size(), known + 1);
    }
    EXPECT_EQ(find_method(number), nullptr);
    EXPECT_EQ(find_description(number), nullptr);
    EXPECT_EQ(method_descriptions().size(), known);
}

}  // namespace
}  // namespace pgwarp::test

// The life of an index of lists, texts, sets, attributes or bags, through the engine's protocol and mirrors: build,
// insert, delete, search, continue, merge, crash. The engine's answers are compared with a plain scan of the test's
// rows.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "overlap_method/list_table.h"

namespace pgwarp::test
{
namespace
{

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
const auto kinds =
    testing::Values(Kind{"plain", ElementType::list}, Kind{"weighted", ElementType::weighted_list},
                    Kind{"text", ElementType::text, Metric::edit}, Kind{"overlap", ElementType::set, Metric::overlap},
                    Kind{"jaccard", ElementType::set, Metric::set_jaccard},
                    Kind{"attributes", ElementType::attribute_set, Metric::overlap},
                    Kind{"minhash", ElementType::minhash_set, Metric::set_jaccard},
                    Kind{"bm25", ElementType::bag, Metric::bm25}, Kind{"sparse", ElementType::sparse, Metric::l2},
                    Kind{"sparse_product", ElementType::sparse, Metric::inner_product});
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

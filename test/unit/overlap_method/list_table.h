// An index of lists, texts, sets, attributes, bags or sparse vectors with its pages and logs, as a backend has them,
// and the answers of a plain scan of its rows.
#pragma once

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "bag_fixture.h"
#include "numeric/sparse_distance.h"
#include "overlap_method/overlap_client.h"
#include "part_fixture.h"
#include "text_fixture.h"

namespace pgwarp::test
{

inline constexpr std::uint32_t range = 300;
inline constexpr std::size_t indexed = 700;
inline constexpr std::size_t inserted = 900;

// Lists of integers are rows of the method for tests, the others of matchcount.
struct Kind {
    const char* name;
    ElementType element;
    Metric metric = Metric{};

    bool is_of_integers() const { return element == ElementType::list || element == ElementType::weighted_list; }
};

inline IndexShape shape_of(const Kind& kind, std::uint32_t words = 0)
{
    if (kind.is_of_integers()) return list_shape(kind.element == ElementType::weighted_list, words);
    IndexShape shape{};
    shape.method = Method::matchcount;
    shape.element = kind.element;
    shape.metric = static_cast<std::uint8_t>(kind.metric);
    if (kind.element == ElementType::sparse) shape.dimensions = words;
    return shape;
}

inline OwnedRows random_rows_of(const Kind& kind, std::size_t count, std::size_t most, unsigned seed)
{
    if (kind.element == ElementType::text) return random_texts(count, most, seed);
    if (is_any_set(kind.element)) return random_sets(count, most, range, seed);
    if (kind.element == ElementType::attribute_set) return random_attribute_sets(count, most, 9, seed);
    if (kind.element == ElementType::bag) return random_bags(count, most, range, seed);
    return random_lists(count, most, range, has_weights(kind.element), seed);
}

inline OwnedRows random_queries_of(const Kind& kind, std::size_t count, std::size_t most, unsigned seed)
{
    if (kind.element == ElementType::attribute_set) return random_queries(count, most, most, 9, seed);
    if (kind.element == ElementType::bag) return random_bag_queries(count, most, range, seed);
    return random_rows_of(kind, count, most, seed);
}

inline SparseView elements_of(const RowView& rows, std::size_t row)
{
    return {rows.list(row).data(), rows.list_weights(row).data(), rows.list(row).size()};
}

inline double distance_of(const Kind& kind, const RowView& query, const RowView& rows, std::size_t row)
{
    if (kind.element == ElementType::text) return plain_distance(text_of(query, 0), text_of(rows, row));
    if (kind.element == ElementType::attribute_set)
        return plain_overlap(query_of(query.list(0)), attributes_of(rows.list(row)));
    if (kind.element == ElementType::bag) return plain_bm25(weights_of(query.list(0)), bag_of(rows.list(row)));
    if (kind.element == ElementType::sparse)
        return sparse_distance(kind.metric, elements_of(query, 0), elements_of(rows, row));
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

inline void expect_results(const SearchOutcome& outcome, std::size_t query, std::size_t first,
                           const std::vector<Live>& truth, std::size_t k)
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
inline void expect_truth(EngineClient& client, const ListTable& table, std::uint32_t k, unsigned seed = 11)
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
inline void expect_all_pages(EngineClient& client, const ListTable& table, std::uint32_t k)
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

}  // namespace pgwarp::test

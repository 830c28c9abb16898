// Search of titles by edit distance on the device:
//
//   text_search_bench --titles FILE [--batches 1024,1] [--lengths 40,70] [--ks 1,10] [--withins 1,2,4] [--runs N]
//     [--seed S] [--checked N] [--all N]
//
// Prints the median of the times of each work as CSV; each row names the length and the edits of the queries, and the
// seed. Queries are titles of a length in which one character in five was replaced, or one or two for all titles within
// a distance. The results of the first N queries (--checked) are compared with a scan of the CPU. --all: of so many
// titles, all pairs within distance 2 and the nearest other title. Searches of one round tell the share of queries
// whose last distance is that of the certified search, and how many times as far all of them are.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>

#include "device/context.h"
#include "harness.h"
#include "matchcount/text_search.h"
#include "methods/matchcount/one_round.h"
#include "methods/ordered_scan.h"
#include "methods/rows/owned_rows.h"
#include "methods/rows/stored_lists.h"
#include "numeric/edit_scan.h"
#include "protocol/search_bound.h"

namespace pgwarp::bench
{

namespace
{

using Results = std::vector<std::vector<RowResult>>;

void append_text(OwnedRows& rows, const std::string& bytes)
{
    std::vector<std::uint32_t> characters(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) characters[i] = static_cast<unsigned char>(bytes[i]);
    std::vector<std::uint32_t> words(text_words(static_cast<std::uint32_t>(bytes.size()), text_width(characters)));
    pack_text(characters, words.data());
    const std::uint64_t offsets[2] = {0, words.size()};
    RowView row;
    row.count = 1;
    row.offsets = offsets;
    row.words = words.data();
    rows.append(row);
}

// The last column of a file with tabs.
std::vector<std::string> read_titles(const std::string& path)
{
    std::ifstream file(path);
    if (!file) throw std::runtime_error("no file " + path);
    std::vector<std::string> titles;
    for (std::string line; std::getline(file, line);) titles.push_back(line.substr(line.rfind('\t') + 1));
    return titles;
}

std::string with_edits(std::string title, std::size_t edits, std::mt19937& random)
{
    std::vector<std::size_t> places(title.size());
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), random);
    for (std::size_t i = 0; i < edits; ++i) {
        char other = title[places[i]];
        while (other == title[places[i]]) other = static_cast<char>('a' + random() % 26);
        title[places[i]] = other;
    }
    return title;
}

// Titles of one length with edits.
OwnedRows make_queries(const std::vector<std::string>& titles, std::size_t count, std::size_t length, std::size_t edits,
                       unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<const std::string*> fitting;
    for (const std::string& title : titles)
        if (title.size() == length) fitting.push_back(&title);
    OwnedRows queries;
    for (std::size_t i = 0; i < count; ++i)
        append_text(queries, with_edits(*fitting[random() % fitting.size()], edits, random));
    return queries;
}

class Bench
{
public:
    explicit Bench(const Arguments& arguments)
        : context_(0, 0),
          pool_(0),
          titles_(read_titles(arguments.text("titles", "titles.tsv"))),
          runs_(arguments.number("runs", 7)),
          seed_(static_cast<unsigned>(arguments.number("seed", 1))),
          checked_(arguments.number("checked", 8))
    {
        for (const std::string& title : titles_) append_text(rows_, title);
        IndexShape shape{};
        shape.method = Method::matchcount;
        shape.metric = static_cast<std::uint8_t>(Metric::edit);
        shape.element = ElementType::text;
        const std::vector<ArrayShape> arrays = list_arrays(rows_.view());
        searcher_ = cuda::make_text_searcher(context_, shape, arrays);
        for (const ArrayShape& array : arrays) {
            std::vector<std::byte> bytes(array.bytes());
            read_list_array(rows_.view(), array.name, 0, bytes);
            searcher_->write(array.name, 0, bytes);
        }
        const auto begin = Clock::now();
        searcher_->finish_load(pool_);
        std::printf("# %s, %zu titles, loaded in %.3f s, %.1f MB on the device, %.1f MB in all\n",
                    context_.name().c_str(), titles_.size(), seconds_since(begin),
                    static_cast<double>(searcher_->residence().device_bytes) / 1e6,
                    static_cast<double>(searcher_->memory_bytes()) / 1e6);
        std::printf("work,k,within,length,edits,seed,batch,ms,queries_a_second,results,checked\n");
    }

    // Batches of queries with edits; within: the largest distance, or infinity, and then in one round, too.
    void search(std::size_t count, std::uint32_t k, double within, std::size_t length, std::size_t edits)
    {
        const OwnedRows queries = make_queries(titles_, count, length, edits, seed_);
        const std::vector<double> reach(count, within);
        SearchBatch batch;
        batch.lists = queries.view();
        batch.count = count;
        batch.k = k;
        if (within < no_bound) batch.reach = reach;
        Results certified;
        const auto add = [&](const char* work, const Results& results, double seconds, const std::string& checked) {
            std::printf("%s,%u,%g,%zu,%zu,%u,%zu,%.3f,%.0f,%zu,%s\n", work, k, within, length, edits, seed_, count,
                        1e3 * seconds, static_cast<double>(count) / seconds, number_of(results), checked.c_str());
            std::fflush(stdout);
        };
        double seconds = time(batch, certified);
        add("search", certified, seconds, check(batch, certified) ? "equal" : "WRONG");
        if (within < no_bound) return;
        batch.settings.set(matchcount_one_round, 1);
        Results results;
        seconds = time(batch, results);
        add("one_round", results, seconds, compared(last_distances(results), last_distances(certified)));
    }

    // Every title as a query, in batches. Returns the last distances.
    std::vector<double> search_all(const char* work, std::size_t batch_size, std::uint32_t k, double within,
                                   std::size_t most, const std::vector<double>* certified = nullptr)
    {
        const std::size_t count = std::min(most, titles_.size());
        const std::vector<double> reach(batch_size, within);
        std::size_t found = 0;
        double seconds = 0;
        std::string checked;
        std::vector<double> last;
        for (std::size_t first = 0; first < count; first += batch_size) {
            SearchBatch batch;
            batch.count = std::min(batch_size, count - first);
            batch.lists = rows_.view().slice(first, batch.count);
            batch.k = k;
            if (within < no_bound) batch.reach = {reach.data(), batch.count};
            if (certified != nullptr) batch.settings.set(matchcount_one_round, 1);
            Results results;
            const auto begin = Clock::now();
            searcher_->search(batch, results, pool_);
            seconds += seconds_since(begin);
            found += number_of(results);
            std::ranges::copy(last_distances(results), std::back_inserter(last));
            if (first == 0 && certified == nullptr) checked = check(batch, results) ? "equal" : "WRONG";
        }
        if (certified != nullptr) checked = compared(last, *certified);
        std::printf("%s,%u,%g,all,0,%u,%zu,%.3f,%.0f,%zu,%s\n", work, k, within, seed_, batch_size, 1e3 * seconds,
                    static_cast<double>(count) / seconds, found, checked.c_str());
        std::fflush(stdout);
        return last;
    }

private:
    // Returns the median of some runs.
    double time(const SearchBatch& batch, Results& results)
    {
        std::vector<double> times;
        for (std::size_t run = 0; run <= runs_; ++run) {
            const auto begin = Clock::now();
            searcher_->search(batch, results, pool_);
            if (run > 0) times.push_back(seconds_since(begin));
        }
        return median(times);
    }
    static std::size_t number_of(const Results& results)
    {
        return std::accumulate(results.begin(), results.end(), std::size_t{0},
                               [](std::size_t sum, const auto& result) { return sum + result.size(); });
    }
    static std::vector<double> last_distances(const Results& results)
    {
        std::vector<double> last;
        for (const auto& result : results) last.push_back(result.empty() ? 0 : result.back().distance);
        return last;
    }
    static std::string compared(const std::vector<double>& found, const std::vector<double>& certified)
    {
        std::size_t same = 0;
        for (std::size_t i = 0; i < found.size(); ++i) same += found[i] == certified[i] ? 1U : 0U;
        const double farther =
            std::accumulate(found.begin(), found.end(), 0.0) / std::accumulate(certified.begin(), certified.end(), 0.0);
        char text[64];
        std::snprintf(text, sizeof text, "%.4f right %.4f as far",
                      static_cast<double>(same) / static_cast<double>(found.size()), farther);
        return text;
    }

    // Whether the results of the first queries are those of a comparison with all titles.
    bool check(const SearchBatch& batch, const Results& results)
    {
        std::vector<std::uint32_t> ids(titles_.size());
        std::iota(ids.begin(), ids.end(), 0);
        bool equal = true;
        for (std::size_t q = 0; q < std::min(checked_, batch.count); ++q) {
            const EditScan scan(view_text(batch.lists.list(q)));
            std::vector<std::uint32_t> distances(titles_.size());
            pool_.parallel_for(ids.size(), 8192, [&](std::size_t begin, std::size_t end) {
                scan.distances(rows_.view(), std::span(ids).subspan(begin, end - begin), no_edit_limit,
                               std::span(distances).subspan(begin, end - begin));
            });
            FirstRows first(batch.k);
            for (std::uint32_t row = 0; row < ids.size(); ++row) {
                if (batch.reach.empty() || distances[row] <= batch.reach[q])
                    first.offer({static_cast<double>(distances[row]), row});
            }
            const std::vector<RowResult> wanted = first.take_sorted();
            equal = equal && std::ranges::equal(wanted, results[q], [](const RowResult& a, const RowResult& b) {
                        return a.distance == b.distance && a.row == b.row;
                    });
        }
        return equal;
    }

    cuda::Context context_;
    ThreadPool pool_;
    std::vector<std::string> titles_;
    OwnedRows rows_;
    std::size_t runs_;
    unsigned seed_;
    std::size_t checked_;
    std::unique_ptr<Searcher> searcher_;
};

void run(const Arguments& arguments)
{
    Bench bench(arguments);
    for (const std::size_t batch : arguments.numbers("batches", "1024,1")) {
        for (const std::size_t length : arguments.numbers("lengths", "40,70"))
            for (const std::size_t k : arguments.numbers("ks", "1,10"))
                bench.search(batch, static_cast<std::uint32_t>(k), no_bound, length, length / 5);
        for (const std::size_t within : arguments.numbers("withins", "1,2,4"))
            bench.search(batch, 1000, static_cast<double>(within), 40, std::min<std::size_t>(within, 2));
    }
    const std::size_t all = arguments.number("all", std::numeric_limits<std::size_t>::max());
    if (all == 0) return;
    bench.search_all("pairs", 16384, 256, 2, all);
    const std::vector<double> nearest = bench.search_all("nearest_other", 4096, 2, no_bound, all);
    bench.search_all("nearest_other_one_round", 4096, 2, no_bound, all, &nearest);
}

}  // namespace

}  // namespace pgwarp::bench

int main(int count, char** values)
{
    return pgwarp::bench::run_benchmark(count, values, pgwarp::bench::run);
}

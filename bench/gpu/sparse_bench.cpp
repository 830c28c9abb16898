// Exact searches of sparse vectors on the device: generated rows and queries whose terms follow Zipf's law.
//
//   sparse_bench --rows 1000000 --queries 10000 --k 10 --terms 30000 --elements 120 --metric ip --weights uniform
//
// Prints the time of a batch from memory of the host to memory of the host: the median of --repeats and all of them.
// The answers of --check queries are compared with sums in float64 over all rows. --columns and --slice take lists of
// numbers, and so do --keep, --growth and --chunk (MiB), for each of which the batch is measured.
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>

#include "harness.h"
#include "matchcount/sparse_search.h"
#include "methods/ordered_scan.h"
#include "methods/rows/stored_lists.h"
#include "numeric/sparse_distance.h"

namespace pgwarp::bench
{
namespace
{

struct Options {
    std::size_t rows;
    std::size_t queries;
    std::uint32_t k;
    std::uint32_t terms;
    std::uint32_t elements;
    Metric metric;
    std::string weights;
    std::size_t check;
    std::size_t repeats;
};

Options options_of(const Arguments& given)
{
    const std::string metric = given.text("metric", "ip");
    return {given.number("rows", 1000000),
            given.number("queries", 10000),
            static_cast<std::uint32_t>(given.number("k", 10)),
            static_cast<std::uint32_t>(given.number("terms", 30000)),
            static_cast<std::uint32_t>(given.number("elements", 120)),
            metric == "ip"       ? Metric::inner_product
            : metric == "cosine" ? Metric::cosine
                                 : Metric::l2,
            given.text("weights", "uniform"),
            given.number("check", 200),
            given.number("repeats", 5)};
}

// Sparse vectors of as many elements each.
struct Vectors {
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> words;
    std::vector<float> weights;

    RowView view() const
    {
        RowView rows;
        rows.count = offsets.size() - 1;
        rows.offsets = offsets.data();
        rows.words = words.data();
        rows.weights = weights.data();
        return rows;
    }
    SparseView vector(std::size_t i) const
    {
        return {words.data() + offsets[i], weights.data() + offsets[i], offsets[i + 1] - offsets[i]};
    }
};

// Draws terms by Zipf's law with exponent 1; the term of a rank is a random one.
class Zipf
{
public:
    explicit Zipf(std::uint32_t terms) : bounds_(terms), names_(terms)
    {
        double sum = 0;
        for (std::uint32_t i = 0; i < terms; ++i) bounds_[i] = sum += 1.0 / (i + 1);
        for (double& bound : bounds_) bound /= sum;
        for (std::uint32_t i = 0; i < terms; ++i) names_[i] = i;
        std::mt19937_64 random(99);
        std::shuffle(names_.begin(), names_.end(), random);
    }
    std::uint32_t draw(std::mt19937_64& random) const
    {
        const double at = static_cast<double>(random() >> 11) * 0x1p-53;
        const auto rank =
            static_cast<std::size_t>(std::upper_bound(bounds_.begin(), bounds_.end(), at) - bounds_.begin());
        return names_[std::min(rank, names_.size() - 1)];
    }

private:
    std::vector<double> bounds_;
    std::vector<std::uint32_t> names_;
};

float random_weight(const std::string& law, std::mt19937_64& random)
{
    const double uniform = static_cast<double>((random() >> 11) + 1) * 0x1p-53;
    if (law == "uniform") return static_cast<float>(uniform);
    if (law == "exponential") return static_cast<float>(-std::log(uniform) + 1e-6);
    if (law == "signed") return static_cast<float>(uniform < 0.5 ? uniform - 0.5 : uniform);
    throw std::invalid_argument("--weights: uniform, exponential or signed");
}

Vectors generate(const Options& options, std::size_t count, std::uint64_t seed, ThreadPool& pool)
{
    const Zipf zipf(options.terms);
    Vectors made;
    made.offsets.resize(count + 1);
    for (std::size_t i = 0; i <= count; ++i) made.offsets[i] = i * options.elements;
    made.words.resize(made.offsets.back());
    made.weights.resize(made.offsets.back());
    pool.parallel_for(count, 1024, [&](std::size_t begin, std::size_t end) {
        std::mt19937_64 random(seed * 1000003 + begin);
        std::vector<std::size_t> seen(options.terms, SIZE_MAX);
        for (std::size_t i = begin; i < end; ++i) {
            std::uint32_t* const words = made.words.data() + made.offsets[i];
            for (std::uint32_t filled = 0; filled < options.elements;) {
                const std::uint32_t term = zipf.draw(random);
                if (std::exchange(seen[term], i) != i) words[filled++] = term;
            }
            std::sort(words, words + options.elements);
            for (std::uint32_t at = 0; at < options.elements; ++at)
                made.weights[made.offsets[i] + at] = random_weight(options.weights, random);
        }
    });
    return made;
}

// The nearest rows by definition: every row, in float64. Elements that the query lacks add zeros.
std::vector<RowResult> by_all_rows(const Options& options, const Vectors& rows, const SparseView& query,
                                   ThreadPool& pool)
{
    std::vector<double> elements(options.terms);
    for (std::size_t i = 0; i < query.count; ++i) elements[query.indices[i]] = query.values[i];
    const double square = sparse_norm_squared(query);
    const auto distance = [&](const SparseView& row) {
        if (options.metric == Metric::l2) return sparse_distance(options.metric, query, row);
        double dot = 0;
        for (std::size_t i = 0; i < row.count; ++i) dot += elements[row.indices[i]] * row.values[i];
        return options.metric == Metric::cosine ? sparse_cosine_distance(dot, square, sparse_norm_squared(row)) : -dot;
    };
    FirstRows first(options.k);
    std::mutex mutex;
    pool.parallel_for(options.rows, 16384, [&](std::size_t begin, std::size_t end) {
        FirstRows some(options.k);
        for (std::size_t i = begin; i < end; ++i) some.offer({distance(rows.vector(i)), static_cast<std::uint32_t>(i)});
        const std::lock_guard lock(mutex);
        first.merge(some);
    });
    return first.take_sorted();
}

using Answers = std::vector<std::vector<RowResult>>;

// Returns the number of queries whose answers differ.
std::size_t count_wrong(const Answers& wanted, const Answers& found)
{
    std::size_t wrong = 0;
    for (std::size_t q = 0; q < wanted.size(); ++q) {
        const bool same = std::equal(
            wanted[q].begin(), wanted[q].end(), found[q].begin(), found[q].end(),
            [](const RowResult& a, const RowResult& b) { return a.distance == b.distance && a.row == b.row; });
        wrong += same ? 0 : 1;
    }
    return wrong;
}

class Bench
{
public:
    Bench(const Arguments& given) : given_(given), options_(options_of(given)), pool_(0), context_(0, 0)
    {
        auto begin = Clock::now();
        rows_ = generate(options_, options_.rows, 1, pool_);
        queries_ = generate(options_, options_.queries, 2, pool_);
        std::printf(
            "%s, %u threads: %zu rows, %zu queries, %u of %u terms each, weights %s, metric %s, k %u; generated in "
            "%.1f s\n",
            context_.name().c_str(), static_cast<unsigned>(pool_.threads()), options_.rows, options_.queries,
            options_.elements, options_.terms, options_.weights.c_str(), given.text("metric", "ip").c_str(), options_.k,
            seconds_since(begin));
        count_postings();
        begin = Clock::now();
        wanted_.resize(std::min(options_.check, options_.queries));
        for (std::size_t i = 0; i < wanted_.size(); ++i)
            wanted_[i] = by_all_rows(options_, rows_, queries_.vector(i), pool_);
        std::printf("answers of %zu queries by all rows: %.1f s\n", wanted_.size(), seconds_since(begin));
        std::fflush(stdout);
    }

    void run()
    {
        for (const std::size_t columns : given_.numbers("columns", "256"))
            for (const std::size_t slice : given_.numbers("slice", "2048"))
                run_index({static_cast<std::uint32_t>(columns), static_cast<std::uint32_t>(slice)});
    }

private:
    void count_postings() const
    {
        std::vector<double> of_term(options_.terms);
        for (const std::uint32_t word : rows_.words) of_term[word] += 1;
        double sum = 0;
        for (const std::uint32_t word : queries_.words) sum += of_term[word];
        std::printf("postings a query: %.3g\n", sum / static_cast<double>(options_.queries));
    }

    void run_index(const cuda::matchcount::SparseTuning& tuning)
    {
        IndexShape shape{};
        shape.method = Method::matchcount;
        shape.metric = static_cast<std::uint8_t>(options_.metric);
        shape.element = ElementType::sparse;
        shape.dimensions = options_.terms;
        const auto begin = Clock::now();
        const std::vector<ArrayShape> arrays = list_arrays(rows_.view());
        const std::unique_ptr<Searcher> searcher = cuda::make_sparse_searcher(context_, shape, arrays, tuning);
        write(*searcher, arrays);
        searcher->finish_load(pool_);
        std::printf("index of %u columns, slices of %u: loaded in %.1f s, %.2f GB on the device\n", tuning.columns,
                    tuning.slice, seconds_since(begin), static_cast<double>(searcher->residence().device_bytes) / 1e9);
        std::fflush(stdout);
        for (const std::size_t growth : given_.numbers("growth", "16"))
            for (const std::size_t keep : given_.numbers("keep", "0"))
                for (const std::size_t chunk : given_.numbers("chunk", "40"))
                    measure(*searcher, {static_cast<std::uint32_t>(keep), static_cast<std::uint32_t>(growth),
                                        std::uint64_t{chunk} << 20});
        if (given_.given.contains("cpu")) compare_with_cpu(*searcher);
    }

    void write(Searcher& searcher, std::span<const ArrayShape> arrays)
    {
        for (const ArrayShape& array : arrays) {
            const std::byte* from = nullptr;
            if (std::string_view(array.name) == array_list_offsets)
                from = reinterpret_cast<const std::byte*>(rows_.offsets.data());
            else if (std::string_view(array.name) == array_list_words)
                from = reinterpret_cast<const std::byte*>(rows_.words.data());
            else
                from = reinterpret_cast<const std::byte*>(rows_.weights.data());
            searcher.write(array.name, 0, {from, array.bytes()});
        }
    }

    SearchBatch batch_of(std::size_t first, std::size_t count) const
    {
        SearchBatch batch;
        batch.lists = queries_.view().slice(first, count);
        batch.count = count;
        batch.k = options_.k;
        return batch;
    }

    void measure(Searcher& searcher, const cuda::SparseSearchTuning& tuning)
    {
        cuda::set_sparse_tuning(searcher, tuning);
        for (const std::size_t count : given_.numbers("batch", std::to_string(options_.queries))) {
            const std::size_t asked = std::min(count, options_.queries);
            const SearchBatch batch = batch_of(0, asked);
            Answers found;
            const cuda::SparseStatistics before = cuda::sparse_statistics(searcher);
            searcher.search(batch, found, pool_);
            const cuda::SparseStatistics after = cuda::sparse_statistics(searcher);
            const std::size_t checked = std::min(asked, wanted_.size());
            const std::size_t wrong =
                count_wrong({wanted_.begin(), wanted_.begin() + static_cast<std::ptrdiff_t>(checked)}, found);
            std::vector<double> times;
            searcher.search(batch, found, pool_);
            for (std::size_t i = 0; i < options_.repeats; ++i) {
                const auto begin = Clock::now();
                searcher.search(batch, found, pool_);
                times.push_back(seconds_since(begin));
            }
            const std::chrono::duration<double, std::milli> all_writing =
                cuda::sparse_statistics(searcher).writing - after.writing;
            const double writing = all_writing.count() / static_cast<double>(options_.repeats + 1);
            std::printf(
                "keep %u growth %u chunk %llu MiB, batch %zu: median %.2f ms, %.0f queries/s; wrong %zu of %zu;"
                " filtered again %llu, by the host %llu; writing %.2f ms; all:",
                tuning.keep, tuning.growth, static_cast<unsigned long long>(tuning.chunk_bytes >> 20), asked,
                1e3 * median(times), static_cast<double>(asked) / median(times), wrong, checked,
                static_cast<unsigned long long>(after.filtered_again - before.filtered_again),
                static_cast<unsigned long long>(after.by_host - before.by_host), writing);
            for (const double time : times) std::printf(" %.2f", 1e3 * time);
            std::printf(" ms\n");
            std::fflush(stdout);
        }
    }

    // The CPU's search with all threads, of some queries one after the other.
    void compare_with_cpu(Searcher& searcher)
    {
        const std::size_t count = std::min<std::size_t>(given_.number("cpu", 16), options_.queries);
        std::vector<double> times;
        Answers found(count);
        for (std::size_t q = 0; q < count; ++q) {
            const auto begin = Clock::now();
            searcher.search_exact(batch_of(q, 1), before_all.distance, before_all.row, found[q], pool_);
            times.push_back(seconds_since(begin));
        }
        std::printf("the CPU's search of one query by all threads: median %.2f ms\n", 1e3 * median(times));
        std::fflush(stdout);
    }

    const Arguments& given_;
    Options options_;
    ThreadPool pool_;
    cuda::Context context_;
    Vectors rows_;
    Vectors queries_;
    Answers wanted_;
};

void run(const Arguments& given)
{
    Bench(given).run();
}

}  // namespace
}  // namespace pgwarp::bench

int main(int count, char** values)
{
    return pgwarp::bench::run_benchmark(count, values, pgwarp::bench::run);
}

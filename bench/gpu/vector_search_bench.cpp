// Recall against time of the methods' searches of vectors on the device:
//
//   vector_search_bench [--base FILE --queries FILE --dimensions N | --rows N] [--metric l2|l1|cosine]
//     [--indexes METHOD:EFFORT,EFFORT;METHOD,NAME=NUMBER:EFFORT] [--batches 1,16,1024] [--k 10] [--runs N] [--checked
//     N]
//
// Efforts are candidates of matchcount, lists of ivfadc, ef of graph. Prints the build of each index, and of each
// effort and batch the recall of the k nearest, the median of the times of a batch, and queries a second, as CSV. The
// truth is that of exact search. The first queries (--checked) are searched on the CPU too: "equal" where it finds the
// same rows.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "../described.h"
#include "bench_data.h"
#include "device/context.h"
#include "exact/exact.h"
#include "methods.h"
#include "methods/description.h"
#include "methods/recall/searches.h"
#include "numeric/distance.h"

namespace pgwarp::bench
{

namespace
{

using Results = std::vector<std::vector<RowResult>>;

Metric metric_of(const Arguments& arguments)
{
    const std::string name = arguments.text("metric", "l2");
    if (name == "cosine") return Metric::cosine;
    return name == "l1" ? Metric::l1 : Metric::l2;
}

std::vector<std::string> split(const std::string& text, char separator)
{
    std::vector<std::string> items;
    std::stringstream stream(text);
    for (std::string item; std::getline(stream, item, separator);) items.push_back(item);
    return items;
}

void normalise(std::vector<float>& vectors, std::size_t dimensions)
{
    for (std::size_t i = 0; i < vectors.size(); i += dimensions) {
        const double norm = canonical_norm(vectors.data() + i, dimensions);
        for (std::size_t d = 0; d < dimensions; ++d) vectors[i + d] = static_cast<float>(vectors[i + d] / norm);
    }
}

// "METHOD,NAME=NUMBER,...:EFFORT,EFFORT,..."
struct Asked {
    IndexChoice index;
    std::vector<std::int64_t> efforts;

    explicit Asked(const std::string& text) : index(split(text, ':').at(0))
    {
        for (const std::string& effort : split(split(text, ':').at(1), ',')) efforts.push_back(std::stoll(effort));
    }
};

class Bench
{
public:
    explicit Bench(const Arguments& arguments)
        : pool_(0),
          data_(load(arguments, pool_)),
          metric_(metric_of(arguments)),
          k_(static_cast<std::uint32_t>(arguments.number("k", 10))),
          runs_(arguments.number("runs", 11)),
          checked_(std::min(arguments.number("checked", 16), data_.asked())),
          batches_(arguments.numbers("batches", "1,16,1024"))
    {
        cuda::contexts().push_back(std::make_unique<cuda::Context>(0, 0));
        if (metric_ == Metric::cosine) {
            normalise(data_.base, data_.dimensions);
            normalise(data_.queries, data_.dimensions);
        }
        std::printf("# %s, %zu rows of %zu dimensions\n", cuda::contexts()[0]->name().c_str(), data_.rows(),
                    data_.dimensions);
        find_truth();
        std::printf("index,effort,batch,recall,ms,queries_a_second,cpu\n");
    }
    ~Bench()
    {
        device_.reset();
        cuda::contexts().clear();
    }

    void measure(const Asked& asked)
    {
        build(asked);
        for (const std::int64_t effort : asked.efforts) {
            const double recall = recall_of(effort);
            const bool equal = equals_cpu(effort);
            for (const std::size_t batch : batches_) time(asked, effort, batch, recall, equal);
        }
        device_.reset();
        cpu_.reset();
    }

private:
    SearchBatch batch_of(std::size_t first, std::size_t count, std::int64_t effort) const
    {
        SearchBatch batch;
        batch.count = count;
        batch.queries = std::span(data_.queries).subspan(first * data_.dimensions, count * data_.dimensions);
        batch.k = k_;
        batch.effort = effort;
        return batch;
    }
    IndexShape shape_of(Method method) const
    {
        IndexShape shape{};
        shape.method = method;
        shape.element = ElementType::float32;
        shape.metric = static_cast<std::uint8_t>(metric_);
        shape.dimensions = static_cast<std::uint32_t>(data_.dimensions);
        return shape;
    }

    void find_truth()
    {
        const std::vector<ArrayShape> arrays = {
            make_array_shape("vectors", ArrayType::f32, data_.rows(), data_.dimensions)};
        const auto exact = cuda::complete_method()->make_searcher(shape_of(Method::exact), {}, arrays);
        exact->write("vectors", 0, std::as_bytes(std::span(data_.base)));
        exact->finish_load(pool_);
        exact->search(batch_of(0, data_.asked(), 0), truth_, pool_);
    }

    void build(const Asked& asked)
    {
        const MethodFactory* method = cuda::find_method(asked.index.method->method);
        const IndexShape shape = shape_of(asked.index.method->method);
        RowBuffer rows(data_.dimensions);
        std::vector<Tid> tids(data_.rows());
        for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
        rows.append(tids, data_.base);
        rows.sort_by_tid(&pool_);
        const auto builder = method->make_builder(shape, asked.index.options);
        auto begin = Clock::now();
        builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool_);
        const double built = seconds_since(begin);
        const std::vector<ArrayShape> arrays = builder->arrays();
        begin = Clock::now();
        device_ = method->make_searcher(shape, builder->effective_options(), arrays);
        feed_searcher(*builder, *device_, pool_);
        std::printf("# %s: built in %.2f s, loaded in %.2f s, %.1f MB on the device\n", asked.index.text.c_str(), built,
                    seconds_since(begin), static_cast<double>(device_->residence().device_bytes) / 1e6);
        if (checked_ == 0) return;
        cpu_ = find_method(asked.index.method->method)->make_searcher(shape, builder->effective_options(), arrays);
        feed_searcher(*builder, *cpu_, pool_);
    }

    double recall_of(std::int64_t effort)
    {
        Results results;
        device_->search(batch_of(0, data_.asked(), effort), results, pool_);
        std::size_t found = 0;
        for (std::size_t q = 0; q < results.size(); ++q)
            for (const RowResult& result : results[q])
                found += std::ranges::any_of(truth_[q], [&](const RowResult& row) { return row.row == result.row; });
        return static_cast<double>(found) / static_cast<double>(data_.asked() * k_);
    }
    bool equals_cpu(std::int64_t effort)
    {
        if (checked_ == 0) return false;
        Results wanted;
        Results found;
        const SearchBatch batch = batch_of(0, checked_, effort);
        cpu_->search(batch, wanted, pool_);
        device_->search(batch, found, pool_);
        return std::ranges::equal(wanted, found, [](const auto& a, const auto& b) {
            return std::ranges::equal(a, b, [](const RowResult& x, const RowResult& y) {
                return x.row == y.row && x.distance == y.distance;
            });
        });
    }

    // Batches are those of different queries.
    void time(const Asked& asked, std::int64_t effort, std::size_t batch, double recall, bool equal)
    {
        batch = std::min(batch, data_.asked());
        std::vector<double> times;
        Results results;
        const std::size_t runs = batch < 64 ? 10 * runs_ : runs_;
        for (std::size_t run = 0; run < runs + 2; ++run) {
            const std::size_t first = run * batch % (data_.asked() - batch + 1);
            const auto begin = Clock::now();
            device_->search(batch_of(first, batch, effort), results, pool_);
            if (run >= 2) times.push_back(seconds_since(begin));
        }
        const double seconds = median(times);
        std::printf("%s,%lld,%zu,%.4f,%.4f,%.0f,%s\n", asked.index.text.c_str(), static_cast<long long>(effort), batch,
                    recall, 1e3 * seconds, static_cast<double>(batch) / seconds,
                    checked_ == 0 ? "-"
                    : equal       ? "equal"
                                  : "differs");
        std::fflush(stdout);
    }

    ThreadPool pool_;
    Data data_;
    Metric metric_;
    std::uint32_t k_;
    std::size_t runs_;
    std::size_t checked_;
    std::vector<std::size_t> batches_;
    Results truth_;
    std::unique_ptr<Searcher> device_;
    std::unique_ptr<Searcher> cpu_;
};

void run(const Arguments& arguments)
{
    Bench bench(arguments);
    const std::string all = "matchcount:115,473,2612;ivfadc:8,16,32,64;graph:32,64,128";
    for (const std::string& index : split(arguments.text("indexes", all), ';')) bench.measure(Asked(index));
}

}  // namespace

}  // namespace pgwarp::bench

int main(int count, char** values)
{
    return pgwarp::bench::run_benchmark(count, values, pgwarp::bench::run);
}

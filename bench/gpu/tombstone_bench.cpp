// The cost of dead rows for a search on the device: one query at a time, from and to host memory, with no dead row and
// with one, in turns, and the first search after the dead rows have changed. By the host's clock.
//
//   tombstone_bench [--rows N] [--dimensions D] [--methods NAME,...] [--searches N] [--k K]
//                   [--probes P] [--ef E] [--queries N]
//
// Rows are a Gaussian mixture. "ratio" is the median with one dead row over that without.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "bench_data.h"
#include "device/context.h"
#include "methods.h"
#include "methods/method.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::bench;

double microseconds_since(Clock::time_point begin)
{
    return seconds_since(begin) * 1e6;
}

struct Loaded {
    IndexShape shape{};
    std::unique_ptr<Searcher> searcher;
    double seconds = 0;  // of build and load
};

Loaded build(Method method, const Data& data, ThreadPool& pool)
{
    const auto begin = Clock::now();
    Loaded loaded;
    loaded.shape.method = method;
    loaded.shape.element = ElementType::float32;
    loaded.shape.metric = static_cast<std::uint8_t>(Metric::l2);
    loaded.shape.dimensions = static_cast<std::uint32_t>(data.dimensions);
    const MethodFactory& descriptor = *cuda::find_method(method);
    const auto builder = descriptor.make_builder(loaded.shape, {});
    std::vector<Tid> tids(data.rows());
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    RowBuffer rows(data.dimensions);
    rows.append(tids, data.base);
    rows.sort_by_tid(&pool);
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    const std::vector<ArrayShape> arrays = builder->arrays();
    loaded.searcher = descriptor.make_searcher(loaded.shape, builder->effective_options(), arrays);
    std::vector<std::byte> piece(std::size_t{8} << 20);
    for (const ArrayShape& array : arrays) {
        for (std::size_t offset = 0; offset < array.bytes(); offset += piece.size()) {
            const std::span<std::byte> part =
                std::span(piece).first(std::min<std::size_t>(piece.size(), array.bytes() - offset));
            builder->read(array.name, offset, part);
            loaded.searcher->write(array.name, offset, part);
        }
    }
    loaded.searcher->finish_load(pool);
    loaded.seconds = microseconds_since(begin) / 1e6;
    return loaded;
}

// One query after the other.
class Asking
{
public:
    Asking(const Searcher& searcher, const Data& data, SearchBatch settings)
        : searcher_(searcher), data_(data), batch_(std::move(settings))
    {
        batch_.count = 1;
    }
    double microseconds(std::size_t query, RowBitmap dead, std::uint64_t version)
    {
        batch_.queries = std::span(data_.queries).subspan(query % data_.asked() * data_.dimensions, data_.dimensions);
        batch_.dead = dead;
        batch_.dead_version = version;
        const auto begin = Clock::now();
        searcher_.search(batch_, results_, alone_);
        return microseconds_since(begin);
    }

private:
    const Searcher& searcher_;
    const Data& data_;
    SearchBatch batch_;
    ThreadPool alone_{1};
    std::vector<std::vector<RowResult>> results_;
};

void measure(const char* name, const Loaded& loaded, const Data& data, const SearchBatch& settings,
             std::size_t searches)
{
    std::vector<std::uint64_t> one((data.rows() + 63) / 64);
    one[one.size() / 2] = 1;
    const std::uint64_t version = new_bitmap_version();
    Asking asking(*loaded.searcher, data, settings);
    for (std::size_t i = 0; i < 50; ++i) {
        asking.microseconds(i, {}, 0);
        asking.microseconds(i, one, version);
    }
    std::vector<double> without;
    std::vector<double> with;
    for (std::size_t i = 0; i < searches; ++i) {
        without.push_back(asking.microseconds(i, {}, 0));
        with.push_back(asking.microseconds(i, one, version));
    }
    std::vector<double> changed;
    for (std::size_t i = 0; i < 20; ++i) {
        one[i] |= 2;
        changed.push_back(asking.microseconds(i, one, new_bitmap_version()));
    }
    std::printf(
        "%-8s %9zu x %zu  none dead %9.2f us  one dead %9.2f us  ratio %.4f  after a change %9.2f us  (built in %.1f "
        "s)\n",
        name, data.rows(), data.dimensions, median(without), median(with), median(with) / median(without),
        median(changed), loaded.seconds);
    std::fflush(stdout);
}

void run(const Arguments& arguments)
{
    ThreadPool pool(std::thread::hardware_concurrency());
    Arguments given = arguments;
    given.given.try_emplace("rows", "10000000");
    given.given.try_emplace("queries", "1000");
    given.given.try_emplace("rotate", "0");
    const Data data = load(given, pool);
    cuda::contexts().push_back(std::make_unique<cuda::Context>(0, 0));
    std::string all;
    for (const MethodDescription* description : method_descriptions()) {
        if (!takes_elements(*description, ElementType::float32)) continue;
        if (!all.empty()) all += ',';
        all += description->name;
    }
    for (const std::string& name : given.texts("methods", all.c_str())) {
        const MethodDescription* method = find_description(name.c_str());
        if (method == nullptr) throw std::runtime_error("unknown method " + name);
        const Loaded loaded = build(method->method, data, pool);
        SearchBatch settings;
        settings.k = static_cast<std::uint32_t>(given.number("k", 10));
        settings.effort =
            static_cast<std::int64_t>(method->links_rows ? given.number("ef", 64) : given.number("probes", 32));
        measure(name.c_str(), loaded, data, settings, given.number("searches", 3000));
    }
    cuda::contexts().clear();
}

}  // namespace

int main(int count, char** values)
{
    return run_benchmark(count, values, run);
}

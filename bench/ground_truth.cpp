#include "ground_truth.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <queue>
#include <stdexcept>
#include <thread>

namespace pgwarp::bench
{

namespace
{

// Sum of f(a[i], b[i]) in float64, in eight lanes that the compiler can vectorize.
template <typename F>
double lanes_sum(std::span<const float> a, std::span<const float> b, F f)
{
    constexpr std::size_t lanes = 8;
    double sums[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= a.size(); i += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += f(double{a[i + lane]}, double{b[i + lane]});
    }
    for (; i < a.size(); ++i) sums[0] += f(double{a[i]}, double{b[i]});
    double total = 0;
    for (const double sum : sums) total += sum;
    return total;
}

double dot(std::span<const float> a, std::span<const float> b)
{
    return lanes_sum(a, b, [](double x, double y) { return x * y; });
}

void nearest_of(const Matrix<float>& base, std::span<const float> query, Metric metric, std::span<double> out)
{
    std::priority_queue<double> worst_first;
    for (std::size_t row = 0; row < base.rows; ++row) {
        const double value = distance(metric, query, base.row(row));
        if (worst_first.size() < out.size()) {
            worst_first.push(value);
        } else if (value < worst_first.top()) {
            worst_first.pop();
            worst_first.push(value);
        }
    }
    for (std::size_t i = worst_first.size(); i-- > 0; worst_first.pop()) out[i] = worst_first.top();
}

std::uint64_t hash_bytes(std::uint64_t hash, const void* data, std::size_t size)
{
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
    return hash;
}

std::string cache_file(const std::string& folder, const Matrix<float>& base, const Matrix<float>& queries,
                       Metric metric, std::size_t k)
{
    const std::uint64_t shape[] = {base.rows, base.columns, queries.rows, static_cast<std::uint64_t>(metric), k};
    std::uint64_t hash = hash_bytes(0xcbf29ce484222325ULL, shape, sizeof(shape));
    hash = hash_bytes(hash, base.values.data(), base.values.size() * sizeof(float));
    hash = hash_bytes(hash, queries.values.data(), queries.values.size() * sizeof(float));
    char name[32];
    std::snprintf(name, sizeof(name), "%016llx.truth", static_cast<unsigned long long>(hash));
    return (std::filesystem::path(folder) / name).string();
}

bool read_cache(const std::string& path, Matrix<double>& out)
{
    std::ifstream file(path, std::ios::binary);
    const auto size = static_cast<std::streamsize>(out.values.size() * sizeof(double));
    return file && file.read(reinterpret_cast<char*>(out.values.data()), size) && file.gcount() == size;
}

}  // namespace

Metric parse_metric(const std::string& name)
{
    if (name == "l2") return Metric::l2;
    if (name == "ip") return Metric::inner_product;
    if (name == "cosine") return Metric::cosine;
    throw std::runtime_error("unknown metric " + name + " (known: l2 ip cosine)");
}

double distance(Metric metric, std::span<const float> a, std::span<const float> b)
{
    switch (metric) {
        case Metric::l2:
            return lanes_sum(a, b, [](double x, double y) { return (x - y) * (x - y); });
        case Metric::inner_product:
            return -dot(a, b);
        case Metric::cosine:
            return -dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
    }
    return 0;
}

GroundTruth GroundTruth::compute(const Matrix<float>& base, const Matrix<float>& queries, Metric metric, std::size_t k,
                                 const std::string& cache)
{
    GroundTruth truth;
    k = std::min(k, base.rows);
    truth.distances_ = {queries.rows, k, std::vector<double>(queries.rows * k)};
    const std::string path = cache.empty() ? "" : cache_file(cache, base, queries, metric, k);
    if (!path.empty() && read_cache(path, truth.distances_)) return truth;
    std::atomic<std::size_t> next = 0;
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
            threads.emplace_back([&] {
                for (std::size_t q; (q = next++) < queries.rows;) {
                    nearest_of(base, queries.row(q), metric, truth.distances_.row(q));
                }
            });
        }
    }
    if (!path.empty()) {
        std::filesystem::create_directories(cache);
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(truth.distances_.values.data()),
                   static_cast<std::streamsize>(truth.distances_.values.size() * sizeof(double)));
    }
    return truth;
}

GroundTruth GroundTruth::given(const Matrix<float>& base, const Matrix<float>& queries, Metric metric,
                               const Matrix<std::int32_t>& ids)
{
    if (ids.rows < queries.rows) throw std::runtime_error("the ground truth has fewer queries than there are");
    GroundTruth truth;
    truth.distances_ = {queries.rows, ids.columns, std::vector<double>(queries.rows * ids.columns)};
    for (std::size_t q = 0; q < queries.rows; ++q) {
        for (std::size_t i = 0; i < ids.columns; ++i) {
            const auto id = static_cast<std::size_t>(ids.row(q)[i]);
            if (id >= base.rows) throw std::runtime_error("the ground truth names rows that are not loaded");
            truth.distances_.row(q)[i] = distance(metric, queries.row(q), base.row(id));
        }
        std::ranges::sort(truth.distances_.row(q));
    }
    return truth;
}

double GroundTruth::recall(const Matrix<float>& base, std::span<const float> query, std::size_t query_number,
                           Metric metric, std::vector<std::int32_t> ids, std::size_t k) const
{
    const std::size_t wanted = std::min(k, distances_.columns);
    const double limit = distances_.row(query_number)[wanted - 1];
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::size_t found = 0;
    for (const std::int32_t id : ids) {
        if (id < 0 || static_cast<std::size_t>(id) >= base.rows) throw std::runtime_error("an unknown id came back");
        if (distance(metric, query, base.row(static_cast<std::size_t>(id))) <= limit) ++found;
    }
    return static_cast<double>(std::min(found, wanted)) / static_cast<double>(wanted);
}

}  // namespace pgwarp::bench

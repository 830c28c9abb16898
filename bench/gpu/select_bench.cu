// Times k-selection on operands in device memory, against the time to read them once.
//   select_bench [name ...]        prints the rows whose name contains one of the words (all by default)
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device/error.h"
#include "event_timer.h"
#include "harness.h"
#include "select/select.h"

using namespace pgwarp::cuda;

namespace
{

enum class Filling { normal, equal, few, ascending, descending };
const char* const filling_names[] = {"normal", "equal", "few distinct", "ascending", "descending"};

__device__ unsigned mix(unsigned x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

__global__ void fill_kernel(float* values, std::size_t count, std::size_t columns, Filling filling)
{
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const auto low = static_cast<unsigned>(i), high = static_cast<unsigned>(i >> 32);
        const unsigned a = mix(low ^ mix(high + 77)), b = mix(a ^ 0x9e3779b9u ^ low);
        const auto column = static_cast<float>(i % columns);
        if (filling == Filling::normal)
            values[i] = sqrtf(-2 * logf((static_cast<float>(a >> 8) + 1) * 0x1p-24f)) *
                        cospif(static_cast<float>(b >> 8) * 0x1p-23f);
        if (filling == Filling::equal) values[i] = 1.5f;
        if (filling == Filling::few) values[i] = static_cast<float>(a % 10);
        if (filling == Filling::ascending) values[i] = column;
        if (filling == Filling::descending) values[i] = -column;
    }
}

__global__ void read_kernel(const float4* values, std::size_t count, float* out)
{
    float sum = 0;
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
        const float4 a = __ldcs(values + i), b = __ldcs(values + i + step), c = __ldcs(values + i + 2 * step),
                     d = __ldcs(values + i + 3 * step);
        sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w + c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
    }
    for (; i < count; i += step) sum += values[i].x;
    if (sum == 1.2345f) *out = sum;
}

template <class Work>
double median_ms(Work work)
{
    pgwarp::bench::EventTimer timer(nullptr);
    for (int i = 0; i < 3; i++) work();
    std::vector<double> times;
    double total = 0;
    while (times.size() < 11 || (total < 60 && times.size() < 200)) {
        times.push_back(timer.time(work));
        total += times.back();
    }
    return pgwarp::bench::median(times);
}

struct Case {
    const char* name;
    SelectShape shape;
    Filling filling = Filling::normal;
    SelectMethod method = SelectMethod::automatic;
};

SelectShape shape(std::int64_t rows, std::int64_t columns, std::int64_t k)
{
    return {rows, columns, columns, k};
}

std::vector<Case> cases()
{
    std::vector<Case> all;
    const std::pair<const char*, SelectShape> shapes[] = {
        {"head", shape(10000, 128000, 100)}, {"head", shape(10000, 128000, 1000)}, {"wide", shape(10000, 128000, 10)},
        {"one", shape(1, 5000000, 10)},      {"large", shape(100, 1000000, 4096)}, {"huge", shape(64, 1000000, 65536)}};
    for (const auto& [name, s] : shapes) all.push_back({name, s});
    all.push_back({"one", shape(1, 5000000, 1000)});
    all.push_back({"one", shape(1, 1000000, 100)});
    all.push_back({"few", shape(32, 1000000, 10)});
    all.push_back({"few", shape(32, 1000000, 500)});
    all.push_back({"short", shape(100000, 1000, 10)});
    all.push_back({"short", shape(100000, 1000, 100)});
    all.push_back({"short", shape(10000, 4096, 100)});
    all.push_back({"short", shape(10000, 16384, 32)});
    all.push_back({"mid", shape(10000, 128000, 2048)});
    all.push_back({"one", shape(8, 1000000, 10)});
    all.push_back({"forced", shape(1, 1000000, 100), Filling::normal, SelectMethod::warp});
    all.push_back({"forced", shape(10000, 4096, 100), Filling::normal, SelectMethod::block});
    all.push_back({"forced", shape(10000, 16384, 32), Filling::normal, SelectMethod::warp});
    all.push_back({"whole", shape(1000, 100000, 100000)});
    for (const auto& [name, s] : shapes)
        for (const Filling filling : {Filling::equal, Filling::few, Filling::ascending, Filling::descending})
            all.push_back({"adverse", s, filling});
    for (const auto& [name, s] : {shapes[0], shapes[1], shapes[2]})
        all.push_back({"forced", s, Filling::normal, SelectMethod::grid});
    all.push_back({"forced", shape(10000, 128000, 10), Filling::normal, SelectMethod::warp});
    return all;
}

bool wanted(const char* name, int count, char** words)
{
    for (int i = 1; i < count; i++)
        if (std::strstr(name, words[i]) != nullptr) return true;
    return count == 1;
}

}  // namespace

int main(int count, char** words)
{
    std::size_t values_needed = 0, results_needed = 0, workspace_needed = 0;
    for (const Case& c : cases()) {
        values_needed = std::max(values_needed, static_cast<std::size_t>(c.shape.rows * c.shape.columns));
        results_needed = std::max(results_needed, static_cast<std::size_t>(c.shape.rows * c.shape.k));
        workspace_needed = std::max(workspace_needed, select_workspace_bytes(c.shape, c.method));
    }
    float *values = nullptr, *selected = nullptr;
    std::uint32_t* ids = nullptr;
    void* workspace = nullptr;
    check(cudaMalloc(&values, values_needed * sizeof(float)), "allocating");
    check(cudaMalloc(&selected, results_needed * sizeof(float)), "allocating");
    check(cudaMalloc(&ids, results_needed * sizeof(std::uint32_t)), "allocating");
    check(cudaMalloc(&workspace, workspace_needed), "allocating");

    fill_kernel<<<4096, 256>>>(values, values_needed, 1, Filling::normal);
    const double read_ms = median_ms(
        [&] { read_kernel<<<132 * 8, 512>>>(reinterpret_cast<const float4*>(values), values_needed / 4, selected); });
    const double bandwidth = static_cast<double>(values_needed) * 4 / read_ms * 1e-6;
    std::printf("read bandwidth measured: %.0f GB/s (%.3f ms for %.2f GB)\n", bandwidth, read_ms,
                static_cast<double>(values_needed) * 4e-9);
    std::printf("%-8s %7s %8s %6s %-13s %9s %8s %6s\n", "name", "rows", "columns", "k", "input fp32", "median ms",
                "GB/s", "% read");
    const Case* filled = nullptr;
    const std::vector<Case> all = cases();
    for (const Case& c : all) {
        if (!wanted(c.name, count, words)) continue;
        const auto n = static_cast<std::size_t>(c.shape.rows * c.shape.columns);
        if (filled == nullptr || filled->filling != c.filling || filled->shape.columns != c.shape.columns ||
            filled->shape.rows < c.shape.rows)
            fill_kernel<<<4096, 256>>>(values, n, static_cast<std::size_t>(c.shape.columns), c.filling);
        filled = &c;
        check(cudaDeviceSynchronize(), "filling");
        const double ms =
            median_ms([&] { select_smallest(values, c.shape, selected, ids, workspace, nullptr, c.method); });
        const double rate = static_cast<double>(n) * 4 / ms * 1e-6;
        std::printf("%-8s %7lld %8lld %6lld %-13s %9.4f %8.0f %5.1f%%\n", c.name, (long long)c.shape.rows,
                    (long long)c.shape.columns, (long long)c.shape.k, filling_names[static_cast<int>(c.filling)], ms,
                    rate, 100 * rate / bandwidth);
        std::fflush(stdout);
    }
}

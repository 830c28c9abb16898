// Times the clustering stages on the device: packing, assignment, k-means, product quantizer, half rows, truth, and the
// whole ivfadc build from host memory to host memory.
//   cluster_bench [--rows n] [--dimensions d] [--base file.u8|file.fvecs] [--rotate 1] [--quick 1] [--build 0]
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench_data.h"
#include "cluster/assign.h"
#include "cluster/hadamard.h"
#include "cluster/half_rows.h"
#include "cluster/kmeans.h"
#include "cluster/product_quantizer.h"
#include "cluster/row_products.h"
#include "cluster/truth.h"
#include "cluster/update.h"
#include "device/context.h"
#include "device/error.h"
#include "ivfadc/builder.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/method.h"
#include "numeric/hadamard.h"
#include "numeric/sample.h"

using namespace pgwarp;
using namespace pgwarp::bench;
using pgwarp::cuda::check;

namespace
{

// A rotated Gaussian mixture with a falling spectrum.
__global__ void generate_kernel(float* rows, std::size_t first, std::size_t end, std::size_t dimensions,
                                std::uint64_t seed)
{
    const std::size_t total = end * dimensions;
    for (std::size_t at = first * dimensions + std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < total;
         at += std::size_t{gridDim.x} * blockDim.x) {
        const auto draw = [&](std::uint64_t key) {
            key += 0x9e3779b97f4a7c15ULL;
            key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
            key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
            key ^= key >> 31;
            const float u = (static_cast<float>(key & 0xFFFFFFU) + 0.5F) * 0x1p-24F;
            const float v = static_cast<float>((key >> 24) & 0xFFFFFFU) * 0x1p-24F;
            return sqrtf(-2 * logf(u)) * cospif(2 * v);
        };
        const std::size_t row = at / dimensions;
        const std::size_t d = at % dimensions;
        const std::size_t blob = (row * 2654435761ULL) % 5003;
        const float width = 30.0F * expf(-2.0F * static_cast<float>(d) / static_cast<float>(dimensions));
        rows[at] =
            width * (draw(seed + at) + 0.8F * draw(seed * 31 + (std::uint64_t{1} << 50) + blob * dimensions + d));
    }
}

// Median of several runs, host clock around work and synchronization.
double time_ms(cudaStream_t stream, int runs, const std::function<void()>& work)
{
    std::vector<double> times;
    for (int i = 0; i <= runs; ++i) {
        check(cudaStreamSynchronize(stream), "wait");
        const auto start = Clock::now();
        work();
        check(cudaStreamSynchronize(stream), "wait");
        if (i > 0) times.push_back(seconds_since(start) * 1e3);
    }
    return median(times);
}

void line(const char* what, double ms, double flop, double bytes)
{
    const double floor = std::max(flop / 790e12, bytes / 4.3e12) * 1e3;
    std::printf("%-58s %9.3f ms  %7.1f TFLOP/s  %6.2f TB/s  %5.1f %% of roof\n", what, ms, flop / ms / 1e9,
                bytes / ms / 1e9, 100 * floor / ms);
    std::fflush(stdout);
}

struct Bench {
    cuda::Context context{0, 0};
    cuda::Context::Lease stream = context.lease(cuda::Priority::build);
    cuda::DeviceArray<float> rows;
    std::size_t n;
    std::size_t d;
    bool quick;

    explicit Bench(const Arguments& arguments)
        : n(arguments.number("rows", 1'000'000)),
          d(arguments.number("dimensions", 128)),
          quick(arguments.number("quick", 0) != 0)
    {
        cuda::DeviceArray<float> plain(context.pool(), n * d, "bench", stream);
        if (!arguments.given.contains("base")) {
            const std::size_t step = (std::size_t{1} << 26) / d;
            for (std::size_t first = 0; first < n; first += step)
                generate_kernel<<<4096, 256, 0, stream>>>(plain.data(), first, std::min(first + step, n), d, 11);
        } else {
            const std::vector<float> host = read_vectors(arguments.given.at("base"), d);
            if (host.size() < n * d) throw std::runtime_error("the file has fewer rows");
            check(cudaMemcpyAsync(plain.data(), host.data(), plain.bytes(), cudaMemcpyHostToDevice, stream), "copy");
            check(cudaStreamSynchronize(stream), "wait");
        }
        if (arguments.number("rotate", 1) == 0) {
            rows = std::move(plain);
            return;
        }
        rows = cuda::DeviceArray<float>(context.pool(), n * d, "bench", stream);
        const std::vector<double> exact_rotation = random_rotation(d, 7);
        const std::vector<float> rotation(exact_rotation.begin(), exact_rotation.end());
        cuda::DeviceArray<float> device_rotation(context.pool(), d * d, "bench", stream);
        check(cudaMemcpyAsync(device_rotation.data(), rotation.data(), device_rotation.bytes(), cudaMemcpyHostToDevice,
                              stream),
              "copy");
        cuda::rotate_rows(plain.data(), n, d, {}, device_rotation.data(), rows.data(), stream);
        line("rotation, rows x d x d (fp32)",
             time_ms(stream, 5,
                     [&] { cuda::rotate_rows(plain.data(), n, d, {}, device_rotation.data(), rows.data(), stream); }),
             2.0 * n * d * d, 8.0 * n * d);
    }

    void hadamard()
    {
        const std::vector<std::uint8_t> signs = draw_signs(d, 3);
        cuda::DeviceArray<std::uint8_t> device_signs(context.pool(), signs.size(), "bench", stream);
        check(cudaMemcpyAsync(device_signs.data(), signs.data(), signs.size(), cudaMemcpyHostToDevice, stream), "copy");
        cuda::DeviceArray<float> out(context.pool(), n * d, "bench", stream);
        line("rotation, random (Hadamard)",
             time_ms(
                 stream, 5,
                 [&] { cuda::hadamard_rotate_rows(rows.data(), n, d, {}, device_signs.data(), out.data(), stream); }),
             0, 8.0 * n * d);
    }

    void assignment(std::size_t clusters)
    {
        cuda::DeviceArray<float> centroids(context.pool(), clusters * d, "bench", stream);
        check(cudaMemcpyAsync(centroids.data(), rows.data(), centroids.bytes(), cudaMemcpyDeviceToDevice, stream),
              "copy");
        cuda::DeviceArray<std::uint32_t> labels(context.pool(), n, "bench", stream);
        cuda::DeviceArray<std::uint32_t> changed(context.pool(), 1, "bench", stream);
        check(cudaMemsetAsync(changed.data(), 0, 4, stream), "clear");
        const double flop = 2.0 * n * clusters * d;
        char name[100];
        cuda::TrainingAssigner assigner(context, rows.data(), n, d, centroids.data(), clusters, stream);
        std::snprintf(name, sizeof(name), "assign, training, K=%zu (packed rows)", clusters);
        line(name,
             time_ms(stream, 7, [&] { assigner.assign(centroids.data(), labels.data(), changed.data(), stream); }),
             flop, 2.0 * n * d);
        if (clusters <= 1024 && !quick) {
            cuda::TrainingAssigner portable(context, rows.data(), n, d, centroids.data(), clusters, stream,
                                            cuda::MatrixPath::portable);
            std::snprintf(name, sizeof(name), "assign, training, K=%zu, portable path", clusters);
            line(name,
                 time_ms(stream, 3, [&] { portable.assign(centroids.data(), labels.data(), changed.data(), stream); }),
                 flop, 2.0 * n * d);
        }
        std::snprintf(name, sizeof(name), "assign, exact, K=%zu (fp32 rows, packing included)", clusters);
        line(name,
             time_ms(stream, 5,
                     [&] {
                         cuda::assign_to_centroids(context, Metric::l2, rows.data(), n, d, centroids.data(), clusters,
                                                   labels.data(), nullptr, stream);
                     }),
             3 * flop, 12.0 * n * d);
    }

    void update(std::size_t clusters)
    {
        cuda::DeviceArray<float> centroids(context.pool(), clusters * d, "bench", stream);
        check(cudaMemcpyAsync(centroids.data(), rows.data(), centroids.bytes(), cudaMemcpyDeviceToDevice, stream),
              "copy");
        cuda::DeviceArray<std::uint32_t> labels(context.pool(), n, "bench", stream);
        cuda::DeviceArray<std::uint32_t> flags(context.pool(), 2, "bench", stream);
        check(cudaMemsetAsync(flags.data(), 0, 8, stream), "clear");
        cuda::assign_to_centroids(context, Metric::l2, rows.data(), n, d, centroids.data(), clusters, labels.data(),
                                  nullptr, stream);
        cuda::Frame frame(context, d, stream);
        frame.fit(centroids.data(), clusters, true, stream);
        cuda::CentroidUpdate update(context, n, d, clusters, stream);
        line("update: sort labels", time_ms(stream, 7, [&] { update.group(labels.data(), stream); }), 0, 32.0 * n);
        line("update: means",
             time_ms(stream, 7,
                     [&] { update.average(rows.data(), frame.view(), centroids.data(), flags.data(), stream); }),
             0, 4.0 * n * d);
        line("update: move small clusters",
             time_ms(stream, 7,
                     [&] {
                         update.fill_small(rows.data(), 0, 1, centroids.data(), flags.data(), flags.data() + 1, stream);
                     }),
             0, 0);
    }

    void kmeans(std::size_t clusters)
    {
        cuda::DeviceArray<float> centroids(context.pool(), clusters * d, "bench", stream);
        KMeansOptions training;
        training.clusters = clusters;
        training.iterations = 20;
        training.balanced = false;
        std::size_t iterations = 0;
        const double ms = time_ms(stream, 5, [&] {
            iterations = cuda::train_kmeans(context, rows.data(), n, d, training, centroids.data(), stream);
        });
        char name[100];
        std::snprintf(name, sizeof(name), "k-means, K=%zu, %zu iterations (fp32 rows on device)", clusters, iterations);
        line(name, ms, 2.0 * n * clusters * d * iterations, 4.0 * n * d * iterations);
    }

    void product(std::size_t parts)
    {
        constexpr std::size_t lists = 1024;
        cuda::DeviceArray<float> centroids(context.pool(), lists * d, "bench", stream);
        check(cudaMemcpyAsync(centroids.data(), rows.data(), centroids.bytes(), cudaMemcpyDeviceToDevice, stream),
              "copy");
        cuda::DeviceArray<std::uint32_t> labels(context.pool(), n, "bench", stream);
        cuda::assign_to_centroids(context, Metric::l2, rows.data(), n, d, centroids.data(), lists, labels.data(),
                                  nullptr, stream);
        const ProductQuantizer shape(d, parts);
        cuda::DeviceArray<float> codebooks(context.pool(), 256 * d, "bench", stream);
        cuda::DeviceArray<std::uint8_t> codes(context.pool(), n * parts, "bench", stream);
        const std::size_t sample = std::min<std::size_t>(n, 12288);
        char name[100];
        std::snprintf(name, sizeof(name), "pq training, m=%zu, %zu rows, 8 iterations", parts, sample);
        line(name,
             time_ms(stream, 5,
                     [&] {
                         cuda::train_product_quantizer(context, rows.data(), sample, shape, 5, codebooks.data(),
                                                       nullptr, stream);
                     }),
             2.0 * sample * 256 * d * 8, 4.0 * sample * d * 16);
        std::snprintf(name, sizeof(name), "pq encoding, m=%zu, residuals of %zu lists", parts, lists);
        line(name,
             time_ms(stream, 5,
                     [&] {
                         cuda::encode_product(context, rows.data(), n, {labels.data(), centroids.data()}, shape,
                                              codebooks.data(), codes.data(), nullptr, stream);
                     }),
             2.0 * n * 256 * d, 4.0 * n * d + n * parts);
    }

    void half_and_truth()
    {
        HalfCodec codec;
        line("half: mean and scale",
             time_ms(stream, 5, [&] { codec = cuda::train_half(context, rows.data(), n, d, stream); }), 0, 4.0 * n * d);
        cuda::DeviceArray<float> mean(context.pool(), d, "bench", stream);
        check(cudaMemcpyAsync(mean.data(), codec.mean.data(), mean.bytes(), cudaMemcpyHostToDevice, stream), "copy");
        cuda::DeviceArray<std::uint16_t> out(context.pool(), n * d, "bench", stream);
        cuda::DeviceArray<std::uint32_t> worst(context.pool(), 1, "bench", stream);
        check(cudaMemsetAsync(worst.data(), 0, 4, stream), "clear");
        line("half: conversion and error bound",
             time_ms(stream, 5,
                     [&] { cuda::encode_half(rows.data(), n, codec, mean.data(), out.data(), worst.data(), stream); }),
             0, 6.0 * n * d);
        const auto sample = sample_rows(n, 215, 3);
        ThreadPool pool(0);
        line("truth of 215 rows, k=1000",
             time_ms(stream, 3,
                     [&] {
                         (void)cuda::calibration_truth(context, Metric::l2, rows.data(), n, d, sample, pool, nullptr,
                                                       stream);
                     }),
             2.0 * n * d * sample.size(), 4.0 * n * d);
    }

    void build()
    {
        ThreadPool pool(0);
        std::vector<float> host(n * d);
        check(cudaMemcpy(host.data(), rows.data(), n * d * 4, cudaMemcpyDeviceToHost), "copy");
        std::vector<Tid> tids(n);
        for (std::size_t i = 0; i < n; ++i)
            tids[i] = {static_cast<std::uint32_t>(i / 8), static_cast<std::uint16_t>(i % 8 + 1), 0};
        rows = {};
        for (int run = 0; run < 3; ++run) {
            RowBuffer buffer(d);
            buffer.append(tids, host);
            IndexShape shape{};
            shape.method = Method::ivfadc;
            shape.metric = static_cast<std::uint8_t>(Metric::l2);
            shape.dimensions = static_cast<std::uint32_t>(d);
            const auto builder = cuda::make_ivfadc_builder(context, shape, {}, pgwarp::make_ivfadc_searcher);
            std::string phase;
            auto phase_start = Clock::now();
            BuildProgress progress;
            progress.report = [&](const char* now, std::uint64_t, std::uint64_t) {
                if (phase == now) return;
                if (!phase.empty() && run == 2)
                    std::printf("   %-30s %8.2f ms\n", phase.c_str(),
                                std::chrono::duration<double, std::milli>(Clock::now() - phase_start).count());
                phase = now;
                phase_start = Clock::now();
            };
            const auto start = Clock::now();
            builder->run(buffer, progress, pool);
            const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
            progress.report("", 0, 0);
            std::printf("ivfadc build, host rows to host arrays, run %d: %.1f ms (lists %lld, m %lld)\n", run, ms,
                        static_cast<long long>(builder->effective_options().get("lists", 0)),
                        static_cast<long long>(builder->effective_options().get("subquantizers", 0)));
            const Calibration calibration = builder->calibration();
            for (std::uint32_t i = 0; run == 2 && i < calibration.count; i += 6)
                std::printf("   probes %lld: recall@1/10/100/1000 %.3f %.3f %.3f %.3f\n",
                            static_cast<long long>(calibration.points[i].effort), calibration.points[i].recall[0],
                            calibration.points[i].recall[1], calibration.points[i].recall[2],
                            calibration.points[i].recall[3]);
        }
    }
};

void run(const Arguments& arguments)
{
    Bench bench(arguments);
    std::printf("%zu x %zu, %s\n", bench.n, bench.d, bench.context.name().c_str());
    bench.hadamard();
    bench.assignment(1024);
    bench.assignment(16384);
    bench.update(1024);
    bench.kmeans(1024);
    if (!bench.quick) bench.kmeans(16384);
    bench.product(std::max<std::size_t>(1, bench.d / 4));
    bench.product(std::max<std::size_t>(1, bench.d / 2));
    bench.half_and_truth();
    if (arguments.number("build", 1) != 0) bench.build();
}

}  // namespace

int main(int count, char** values)
{
    return run_benchmark(count, values, run);
}
